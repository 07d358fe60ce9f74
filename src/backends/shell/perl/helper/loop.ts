// The helper's loop: takes requests, gives long ones their slices in turn, and sends answers, one at a time.

import { CHUNK_BYTES, GREETING, MAX_FRAME_BYTES } from "../bounds.ts";

export const LOOP = String.raw`
my ($in, $out) = ("", "");
my (%task, @turns);    # what goes on in slices, by operation, and whose turn it is

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

# "step" does a slice, and is true when that was the last one and the answer is given. What "goes on" does so
# when nobody waits for it any more.
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
