// The relay is a Perl program in a sandbox without a network. It listens on the sandbox's own loopback interface and carries
// each connection over its standard input and output. It needs only Debian's `perl-base`, sleeps while idle, and ends with
// its input. Its argument is the port to listen on. If that port is taken, the system chooses another one.
//
// The frames are those of the file helper (helper.ts), with the id of a connection. Both ends send `d` with data, `g`
// with a number, `e` after their last data, and `x` when the connection is over. Each end may first send `WINDOW_BYTES`
// of data. A `g` grants the given number of additional bytes. Data that was sent before an `x` is still delivered.
//
// Only the relay sends `h` (its name, its version and the port), which comes first, and `o` for a new connection.

import { RELAY_CHUNK_BYTES, RELAY_GREETING, RELAYED_CONNECTIONS, WINDOW_BYTES } from "./relay-frames.ts";

export const RELAY_PROGRAM = String.raw`
use strict;
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_REUSEADDR IPPROTO_TCP TCP_NODELAY INADDR_LOOPBACK pack_sockaddr_in unpack_sockaddr_in);
use Errno;

my $chunk = ${RELAY_CHUNK_BYTES};
my ($in, $out, $last) = ("", "", 0);
my %conn;

sub unblocked { fcntl $_[0], F_SETFL, O_NONBLOCK | fcntl($_[0], F_GETFL, 0) }
sub must_wait { $!{EAGAIN} || $!{EWOULDBLOCK} || $!{EINTR} }

sub answer {
    my ($id, $letter, @fields) = @_;
    my $rest = pack "(N/a*)*", @fields;
    $out .= pack("NNa", 5 + length $rest, $id, $letter) . $rest;
}

sub drop {
    my ($id) = @_;
    my $its = delete $conn{$id} or return;
    close $its->{socket};
}

sub finish {
    my ($id) = @_;
    my $its = $conn{$id};
    if ($its->{ending} and not length $its->{out} and not $its->{shut}) {
        $its->{shut} = 1;
        shutdown $its->{socket}, 1;
    }
    drop($id) if $its->{shut} and $its->{ended};
}

sub welcome {
    my $door = shift;
    accept(my $socket, $door) or return;
    unblocked($socket);
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
    $last = $last % 4294967295 + 1;
    $conn{$last} = { socket => $socket, fd => fileno $socket, out => "", credit => ${WINDOW_BYTES} };
    answer($last, "o");
}

sub take {
    my ($id) = @_;
    my $its = $conn{$id};
    my $most = $its->{credit} < $chunk ? $its->{credit} : $chunk;
    my $count = sysread $its->{socket}, my $bytes, $most;
    if ($count) {
        $its->{credit} -= $count;
        answer($id, "d", $bytes);
    } elsif (defined $count) {
        $its->{ended} = 1;
        answer($id, "e");
        finish($id);
    } elsif (not must_wait()) {
        answer($id, "x");
        drop($id);
    }
}

sub give {
    my ($id) = @_;
    my $its = $conn{$id};
    if (length $its->{out}) {
        my $count = syswrite $its->{socket}, $its->{out}, $chunk;
        if ($count) {
            substr $its->{out}, 0, $count, "";
            answer($id, "g", $count);
        } elsif (not must_wait()) {
            answer($id, "x");
            return drop($id);
        }
    }
    finish($id);
}

my %frames = (
    d => sub { my ($id, $bytes) = @_; $conn{$id}{out} .= $bytes },
    g => sub { my ($id, $count) = @_; $conn{$id}{credit} += $count },
    e => sub { my ($id) = @_; $conn{$id}{ending} = 1; finish($id) },
    x => sub { my ($id) = @_; $conn{$id}{ended} = $conn{$id}{ending} = 1; finish($id) },
);

sub serve {
    return 0 if length $in < 9;
    my ($size, $id, $letter) = unpack "NNa", $in;
    exit if $size < 5 or $size > 4 * $chunk or not $frames{$letter};
    return 0 if length $in < 4 + $size;
    my @fields = unpack "(N/a*)*", substr $in, 9, $size - 5;
    substr $in, 0, 4 + $size, "";
    $frames{$letter}->($id, @fields) if $conn{$id};
    return 1;
}

sub receive {
    my $count = sysread STDIN, $in, $chunk, length $in;
    exit if defined $count ? $count == 0 : !must_wait();
    1 while serve();
}

sub transmit {
    my $count = syswrite STDOUT, $out, 2 * $chunk;
    exit unless defined $count or must_wait();
    substr $out, 0, $count, "" if $count;
}

$0 = "skein-network";
$SIG{PIPE} = $SIG{XFSZ} = "IGNORE";
unblocked($_) for \*STDIN, \*STDOUT;
socket(my $door, PF_INET, SOCK_STREAM, 0) or exit 1;
setsockopt $door, SOL_SOCKET, SO_REUSEADDR, pack "l", 1;
bind($door, pack_sockaddr_in(shift, INADDR_LOOPBACK)) or bind($door, pack_sockaddr_in(0, INADDR_LOOPBACK)) or exit 1;
listen($door, 128) or exit 1;
unblocked($door);
my ($port) = unpack_sockaddr_in(getsockname $door);
answer(0, "h", qw(${RELAY_GREETING.join(" ")}), $port);

for (;;) {
    my ($readable, $writable) = ("", "");
    my $has_room = length $out < 4 * $chunk;
    vec($readable, 0, 1) = 1;
    vec($writable, 1, 1) = 1 if length $out;
    vec($readable, fileno $door, 1) = 1 if $has_room and keys %conn < ${RELAYED_CONNECTIONS};
    for my $its (values %conn) {
        vec($readable, $its->{fd}, 1) = 1 if $has_room and not $its->{ended} and $its->{credit} > 0;
        vec($writable, $its->{fd}, 1) = 1 if length $its->{out};
    }
    next unless select($readable, $writable, undef, undef) > 0;
    transmit() if vec($writable, 1, 1);
    receive() if vec($readable, 0, 1);
    for my $id (keys %conn) {
        my $fd = ($conn{$id} or next)->{fd};
        give($id) if vec($writable, $fd, 1);
        take($id) if $conn{$id} and vec($readable, $fd, 1);
    }
    welcome($door) if vec($readable, fileno $door, 1);
}
`;
