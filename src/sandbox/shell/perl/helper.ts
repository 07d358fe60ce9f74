// The file helper: a Perl program in the sandbox that runs many file operations concurrently over its standard input and
// output. It needs only Debian's `perl-base`, sleeps while idle, and ends when its input ends. Its argument is the workspace.
// All paths are relative to the workspace, without `.` and `..`, and the path of the workspace itself is empty.
//
// In both directions, a frame consists of the length of the rest (u32), the id of an operation (u32), one letter, and
// fields. Each field is preceded by its length (u32). The requests are:
//
//   s path                      attributes of the file that it leads to: kind, bytes, seconds since 1970, real path
//   r path offset length        more (1 or 0), bytes; with an empty length, up to the end
//   m                           the next piece of the file opened by `r`
//   w path last bytes           begins a file; with `last` (1 or 0), moves it to its place
//   a last bytes                appends to that file
//   l path                      `d`: kind, bytes, seconds, name of each entry; then the folder's path
//   f path skipped…             `d`: path of each file below it; then `all` or `more`
//   c most path…                for the first paths: a word (file, none, large) and the bytes
//   d path                      removes the file or folder
//   x                           drops the operation; gets no answer
//
// Every other request gets one final answer: `k` (done) or `e` (the name of an errno, or a code of the helper). Before that,
// `d` (a part of the answer) and `p` (in progress) may arrive. Requests with the same id follow one another.

import { STAGING } from "../prelude.ts";
import { CHUNK_BYTES, GREETING, MAX_FRAME_BYTES } from "./frames.ts";
import { FILES, FOLDERS } from "./helper-files.ts";

/** Reads requests, runs long ones in slices that take turns, and writes answers. */
const LOOP = String.raw`
my ($in, $out) = ("", "");
my (%task, @turns);    # operations that run in slices, and their turns

my %requests = (
    s => \&told,
    r => \&begin_read,
    m => sub { read_on($_[0], kept($_[0])) },
    w => \&begin_write,
    a => \&write_on,
    l => \&list,
    f => \&walk,
    c => \&contents,
    d => \&remove,
    x => \&give_up,
);

sub answer {
    my ($id, $letter, @fields) = @_;
    return if $task{$id} and $task{$id}{is_silent};
    my $rest = pack "(N/a*)*", @fields;
    $out .= pack("NNa", 5 + length $rest, $id, $letter) . $rest;
}

sub fail {
    my ($id) = @_;
    drop($id);
    answer($id, "e", reason());
}

# "step" runs a slice, and returns true after the last one, when it has answered. With "goes_on" the operation
# continues after its caller left.
sub begin {
    my ($id, $step, $goes_on) = @_;
    $task{$id} = { step => $step, goes_on => $goes_on };
    slice($id);
}

sub slice {
    my ($id) = @_;
    my $task = $task{$id} or return;
    my $is_over = 1;
    eval { $is_over = $task->{step}->(); 1 } or fail($id);
    if ($is_over) { delete $task{$id} } else { push @turns, $id }
}

sub give_up {
    my ($id) = @_;
    drop($id);
    my $task = $task{$id} or return;
    answer($id, "e", "ECANCELED");
    if ($task->{goes_on}) { $task->{is_silent} = 1 } else { delete $task{$id} }
}

sub serve {
    return 0 if length $in < 9;
    my ($size, $id, $letter) = unpack "NNa", $in;
    my $request = $requests{$letter};
    leave() if $size < 5 or $size > ${MAX_FRAME_BYTES} or not $request;
    return 0 if length $in < 4 + $size;
    my @fields = unpack "(N/a*)*", substr $in, 9, $size - 5;
    substr $in, 0, 4 + $size, "";
    eval { $request->($id, @fields); 1 } or fail($id);
    return 1;
}

sub receive {
    my $count = sysread STDIN, $in, ${CHUNK_BYTES}, length $in;
    leave() if defined $count ? $count == 0 : !($!{EAGAIN} || $!{EINTR});
}

sub transmit {
    my $count = syswrite STDOUT, $out, ${CHUNK_BYTES};
    leave() unless defined $count or $!{EAGAIN} or $!{EINTR};
    substr $out, 0, $count, "" if $count;
}

sub leave {
    drop($_) for keys %open;
    exit;
}

$0 = "skein-files";
$SIG{PIPE} = $SIG{XFSZ} = "IGNORE";
$SIG{TERM} = $SIG{INT} = $SIG{HUP} = \&leave;
for my $handle (\*STDIN, \*STDOUT) {
    fcntl $handle, F_SETFL, O_NONBLOCK | fcntl($handle, F_GETFL, 0);
}
home();
answer(0, "h", qw(${GREETING.join(" ")}));

for (;;) {
    my $is_busy = 0;
    if (length $out < ${CHUNK_BYTES}) {
        $is_busy = serve() || @turns > 0;
        slice(shift @turns) if @turns;
    }
    transmit() if length $out;
    my ($readable, $writable) = ("", "");
    vec($readable, 0, 1) = 1 if length $in < ${2 * MAX_FRAME_BYTES};
    vec($writable, 1, 1) = 1 if length $out;
    my $ready = select $readable, $writable, undef, $is_busy ? 0 : undef;
    receive() if $ready > 0 and vec($readable, 0, 1);
}
`;

/** Every operation enters its folder and checks the folder's real path, which cannot change afterwards. */
const PATHS = String.raw`
use strict;
use Fcntl qw(F_GETFL F_SETFL O_RDONLY O_WRONLY O_CREAT O_EXCL O_NONBLOCK O_NOFOLLOW);
use Errno;

my $workdir = shift;
my ($root, $here);    # real paths of the workspace and of the current folder
my %name_of = map { (Errno->can($_)->() => $_) } grep { /^E/ } keys %!;

sub refuse { die [@_] }
sub errno { $name_of{$! + 0} || "E" . ($! + 0) }
sub os { refuse(errno()) }
sub reason { ref $@ ? $@->[0] : "EIO" }

sub go { chdir $_[0] or os() }

sub where {
    my $path = readlink "/proc/self/cwd";
    defined $path or os();
    return $path;
}

sub home {
    chdir $workdir or refuse("NO_WORKSPACE");
    $here = $root = where();
}

sub inside {
    $here = where();
    refuse("OUTSIDE") unless $here eq $root or index($here, "$root/") == 0;
}

sub enter {
    my ($path) = @_;
    home();
    return if $path eq "";
    go($path);
    inside();
}

# Splits a path into folder, which may be undefined, and name.
sub parted { $_[0] =~ m{\A(?:(.*)/)?(.*)\z}s }

# Returns the path of an entry of the current folder, relative to the workspace.
sub from_root {
    my ($name) = @_;
    my $path = $name eq "." ? $here : "$here/$name";
    return $path eq $root ? "" : substr $path, 1 + length $root;
}

sub kind {
    my $format = $_[2] & 0170000;
    return $format == 0100000 ? "f" : $format == 0040000 ? "d" : $format == 0120000 ? "l" : "o";
}

sub facts { (kind(@_), $_[7], $_[9]) }

sub require_file {
    my $kind = kind(@_);
    refuse($kind eq "d" ? "EISDIR" : "NOFILE") if $kind ne "f";
}

# Enters the folder of the entry at a path. Returns the entry's name ("." for the folder itself) and its lstat.
sub find {
    my ($path) = @_;
    home();
    $path = "." if $path eq "";
    for (0 .. 40) {
        my ($folder, $name) = parted($path);
        ($folder, $name) = ($path, ".") if $name eq "" or $name eq "." or $name eq "..";
        go($folder eq "" ? "/" : $folder) if defined $folder;
        my @stat = lstat $name or os();
        if (kind(@stat) ne "l") {
            inside();
            return ($name, @stat);
        }
        defined($path = readlink $name) or os();
    }
    refuse("ELOOP");
}

# Enters the folder of a new file and creates it if missing. Returns the file's name and the mode to keep.
sub place {
    my ($path) = @_;
    my ($folder, $name) = parted($path);
    home();
    if (defined $folder and not chdir $folder) {
        os() unless $!{ENOENT};
        for my $part (split m{/}, $folder) {
            next if chdir $part;
            os() unless $!{ENOENT};
            inside();
            mkdir $part or $!{EEXIST} or os();
            go($part);
        }
    }
    inside();
    my @stat = lstat $name;
    return $name if not @stat and $!{ENOENT};
    os() unless @stat;
    if (kind(@stat) eq "l") {
        ($name, @stat) = eval { find($path) };
        refuse(reason() eq "ENOENT" ? "DANGLING" : reason()) unless @stat;
    }
    require_file(@stat);
    return ($name, $stat[2] & 0777);
}

# Returns a new name in staging. Creates staging if it is missing, but never replaces an entry of the user.
my $staged = 0;
sub stage {
    my ($above, $staging) = ("$root/.skein", "$root/${STAGING}");
    refuse("STAGING") if -l $above or -l $staging;
    if (not -d $staging) {
        mkdir $above;
        my $fault = mkdir($staging, 0700) ? undef : errno();
        refuse($fault =~ /^(EEXIST|ENOTDIR)$/ ? "STAGING" : $fault) if $fault and not -d $staging;
    }
    return "$staging/" . join "-", time, unique();
}

sub unique { join "-", $$, ++$staged, map { int rand 0x7fffffff } 1 .. 3 }
`;

export const PROGRAM = [PATHS, FILES, FOLDERS, LOOP].join("\n");
