// The helper's ways through the workspace. Every operation goes to the folder it works in and looks where it really
// is: that counts, and stays so whatever is done to the path meanwhile.

import { STAGING } from "../../prelude.ts";

export const PATHS = String.raw`
use strict;
use Fcntl qw(F_GETFL F_SETFL O_RDONLY O_WRONLY O_CREAT O_EXCL O_NONBLOCK O_NOFOLLOW);
use Errno;

my $workdir = shift;
my ($root, $here);    # real paths: of the workspace, and of where we are
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

# Folder, which may be undefined, and name.
sub parted { $_[0] =~ m{\A(?:(.*)/)?(.*)\z}s }

# The same for what is here, as a path in the workspace.
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

# Goes to the folder of what a path leads to in the end; gives the name in there, "." if it has none, and the lstat.
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

# Goes to the folder of a file to be, made where it is missing; gives the name in there, and the mode it has to keep.
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

# A new name in staging, which is made where it is missing. What a user has put in its place is the user's.
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
