// Ways out of a sandbox that may reach some hosts only, and the program that tries them from inside.

/** Sent by the servers outside. */
export const REACHED = "reached-the-outside";

/**
 * Its first argument is a kind of way: `proxy` sends each of the others, hex, to the proxy, the next one when the last was
 * answered; `tcp`, `tcp6`, `udp`, `udp6` and `unix` send something to an address, `raw` makes a socket for ICMP. It prints
 * what comes back, for as many seconds as `SECONDS`.
 */
export const PROGRAM = String.raw`
use strict;
use Socket qw(:all);
my ($kind, @rest) = @ARGV;
$SIG{ALRM} = sub { exit };
alarm $ENV{SECONDS};
$| = 1;
my $socket;
sub answer { my $count = sysread $socket, my $bytes, 65536; exit unless $count; print $bytes; $count }
if ($kind eq "proxy") {
    my ($port) = $ENV{HTTPS_PROXY} =~ /:(\d+)$/;
    socket($socket, PF_INET, SOCK_STREAM, 0);
    connect($socket, pack_sockaddr_in($port, INADDR_LOOPBACK)) or die "no proxy";
    for my $hex (@rest) { syswrite $socket, pack "H*", $hex; answer() }
} elsif ($kind eq "raw") {
    socket($socket, PF_INET, SOCK_RAW, 1) or exit;
    print "raw";
} elsif ($kind eq "unix") {
    socket($socket, PF_UNIX, SOCK_STREAM, 0);
    connect($socket, pack_sockaddr_un($rest[0])) or exit;
    syswrite $socket, "GET / HTTP/1.0\r\n\r\n";
} else {
    my $is6 = $kind =~ /6/;
    my $type = $kind =~ /tcp/ ? SOCK_STREAM : SOCK_DGRAM;
    my $to = inet_pton($is6 ? AF_INET6 : AF_INET, $rest[0]);
    socket($socket, $is6 ? PF_INET6 : PF_INET, $type, 0) or exit;
    connect($socket, $is6 ? pack_sockaddr_in6($rest[1], $to) : pack_sockaddr_in($rest[1], $to)) or exit;
    syswrite $socket, "GET / HTTP/1.0\r\n\r\n" or exit;
}
1 while answer();
`;

export interface Place {
  /** A port outside on which an allowed host is served, and one on which all other hosts are. */
  readonly allowed: number;
  readonly other: number;
}

const connectTo = (target: string, more = "") =>
  `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${more}\r\n`;
const get = (url: string, host: string, more = "") => `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;
const hex = (...parts: readonly (string | Buffer)[]) =>
  parts.map((part) => Buffer.from(part as string).toString("hex"));

/** The first message of TLS for a server; for several names if one is not enough, and for none without any. */
export function helloFor(...names: readonly string[]): Buffer {
  const sized = (bytes: Buffer, size: 1 | 2 | 3) => {
    const length = Buffer.alloc(size);
    length.writeUIntBE(bytes.length, 0, size);
    return Buffer.concat([length, bytes]);
  };
  const entries = names.map((name) =>
    Buffer.concat([Buffer.from([0]), sized(Buffer.from(name, "latin1"), 2)]),
  );
  const extension = Buffer.concat([Buffer.from([0, 0]), sized(sized(Buffer.concat(entries), 2), 2)]);
  const body = Buffer.concat([
    ...[Buffer.from([3, 3]), Buffer.alloc(32, 7), sized(Buffer.alloc(0), 1)],
    ...[sized(Buffer.from([19, 1]), 2), sized(Buffer.from([0]), 1)],
    sized(names.length === 0 ? Buffer.alloc(0) : extension, 2),
  ]);
  const message = Buffer.concat([Buffer.from([1]), sized(body, 3)]);
  return Buffer.concat([Buffer.from([22, 3, 1]), sized(message, 2)]);
}

/** Ways that lead to an allowed host, with what they send to the proxy. */
export function goodWays({ allowed }: Place): Readonly<Record<string, readonly string[]>> {
  const tunnel = (host: string, name = host) => hex(connectTo(`${host}:${allowed}`), helloFor(name));
  return {
    "a tunnel": tunnel("allowed.example"),
    "a tunnel in capital letters": tunnel("ALLOWED.example", "Allowed.Example"),
    "a tunnel to a name with a final dot": tunnel("allowed.example.", "allowed.example"),
    "a tunnel to a name below a wildcard": tunnel("some.wild.example"),
    "a tunnel to a name far below a wildcard": tunnel("a.b.c.wild.example"),
    "a plain request": hex(get(`http://allowed.example:${allowed}/`, `allowed.example:${allowed}`)),
    "a plain request with a body": hex(
      `POST http://allowed.example:${allowed}/ HTTP/1.1\r\nHost: allowed.example:${allowed}\r\nContent-Length: 2\r\n\r\nhi`,
    ),
  };
}

/** Addresses that are not public, in the notations that programs understand. */
const PRIVATE = [
  ..."127.0.0.1 127.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 0.0.0.0 0 localhost 10.0.0.1 172.17.0.1 192.168.0.1".split(
    " ",
  ),
  ..."169.254.169.254 100.100.100.200 168.63.129.16 [::1] [::] [::ffff:127.0.0.1] [fd00::1] [fe80::1] [64:ff9b::7f00:1]".split(
    " ",
  ),
];

/** What names below `private.example` resolve to. */
export const RESOLVED: Readonly<Record<string, readonly string[]>> = {
  "loopback.private.example": ["127.0.0.1"],
  "loopback6.private.example": ["::1"],
  "mapped.private.example": ["::ffff:127.0.0.1"],
  "nat64.private.example": ["64:ff9b::7f00:1"],
  "any.private.example": ["0.0.0.0"],
  "ten.private.example": ["10.0.0.1"],
  "docker.private.example": ["172.17.0.1"],
  "metadata.private.example": ["169.254.169.254"],
  "metadata6.private.example": ["fd00:ec2::254"],
  "azure.private.example": ["168.63.129.16"],
  "carrier.private.example": ["100.64.0.1"],
  "multicast.private.example": ["224.0.0.1"],
  "link.private.example": ["fe80::1"],
  "mixed.private.example": ["203.0.113.7", "127.0.0.1"],
};

/** Ways through the proxy that must not lead anywhere. */
export function badWays(
  { allowed, other }: Place,
  foreign: string,
): Readonly<Record<string, readonly string[]>> {
  const good = `allowed.example:${allowed}`;
  const tunnels = (targets: readonly string[]) =>
    targets.map((target) => [
      `a tunnel to ${target}`,
      hex(connectTo(target), helloFor(target.replace(/:\d+$/, ""))),
    ]);
  const within = (name: string, ...sent: readonly (string | Buffer)[]) => [
    `a tunnel that contains ${name}`,
    hex(connectTo(good), ...sent),
  ];
  const plain = (name: string, text: string) => [`a request ${name}`, hex(text)];
  const proxyUser = (user: string) =>
    `Proxy-Authorization: Basic ${Buffer.from(`${user}:x`).toString("base64")}\r\n`;
  return Object.fromEntries([
    ...tunnels(PRIVATE.map((host) => `${host}:${other}`)),
    ...tunnels(Object.keys(RESOLVED).map((host) => `${host}:${other}`)),
    ...tunnels([
      ...[`evil.example:${allowed}`, `evil.example:${other}`, `evil.example.:${other}`, "evil.example:443"],
      ...[`allowed.example:${other}`, "allowed.example:22", "allowed.example:53", "allowed.example:25"],
      ...[
        "allowed.example:443",
        "allowed.example:80",
        "allowed.example:0",
        "allowed.example:65536",
        "allowed.example",
      ],
      ...[
        `allowed.example.evil.example:${allowed}`,
        `evil-allowed.example:${allowed}`,
        `x.allowed.example:${allowed}`,
      ],
      ...[
        `wild.example:${allowed}`,
        `evilwild.example:${allowed}`,
        `some.wild.example.evil.example:${allowed}`,
      ],
      ...[`*.wild.example:${allowed}`, `..wild.example:${allowed}`, `.wild.example:${allowed}`],
      ...[`allowed.example@evil.example:${allowed}`, `evil.example#allowed.example:${allowed}`],
      ...[`evil.example/allowed.example:${allowed}`, `allowed.example:${allowed}:${other}`],
      ...[`allowed.example%00evil.example:${allowed}`, `al\u006cowed\u3002example:${allowed}`],
      `${"a.".repeat(200)}wild.example:${allowed}`,
    ]),
    within("TLS for another host", helloFor("evil.example")),
    within("TLS for no host", helloFor()),
    within("TLS for two hosts", helloFor("allowed.example", "evil.example")),
    within("TLS for a longer name", helloFor("allowed.example\0.evil.example")),
    within("TLS for an address", helloFor("127.0.0.1")),
    within("plain HTTP", get("/", "evil.example")),
    within("plain HTTP for the allowed host", get("/", good)),
    within("SSH", "SSH-2.0-OpenSSH_9.2\r\n"),
    within("a database's greeting", Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])),
    within(
      "an alert before the hello",
      Buffer.concat([Buffer.from([21, 3, 1, 0, 2, 1, 0]), helloFor("allowed.example")]),
    ),
    plain("to another host", get(`http://evil.example:${other}/`, `evil.example:${other}`)),
    plain("to another host's usual port", get("http://evil.example/", "evil.example")),
    ...PRIVATE.slice(0, 8).map((host) =>
      plain(`to http://${host}`, get(`http://${host}:${other}/`, `${host}:${other}`)),
    ),
    plain("to a metadata service", get("http://169.254.169.254/latest/meta-data/", "169.254.169.254")),
    plain("to another port", get(`http://allowed.example:${other}/`, `allowed.example:${other}`)),
    plain("with the Host of another", get(`http://${good}/`, "evil.example")),
    plain("with the Host of another port", get(`http://${good}/`, `allowed.example:${other}`)),
    plain("with two Hosts", get(`http://${good}/`, good, "Host: evil.example\r\n")),
    plain("without a Host", `GET http://${good}/ HTTP/1.0\r\n\r\n`),
    plain("to another, with the Host of the allowed one", get(`http://evil.example:${other}/`, good)),
    plain("for a path alone", get("/", good)),
    plain("for https", get(`https://${good}/`, good)),
    plain("for ftp", get(`ftp://${good}/`, good)),
    plain("for a file", get("file:///etc/passwd", good)),
    plain("for a WebSocket", get(`ws://${good}/`, good, "Connection: upgrade\r\nUpgrade: websocket\r\n")),
    plain("with a user", get(`http://user@${good}/`, good)),
    plain("with the allowed host as the user", get(`http://${good}@evil.example:${other}/`, good)),
    plain("with a backslash", get(`http://evil.example:${other}\\@${good}/`, good)),
    plain("with a fragment", get(`http://evil.example:${other}#@${good}/`, good)),
    plain(
      "with a broken header",
      get(`http://evil.example:${other}/`, `evil.example:${other}\r\nHost : ${good}`),
    ),
    plain("with a tab", `GET\thttp://evil.example:${other}/\tHTTP/1.1\r\n\r\n`),
    plain("of HTTP/0.9", `GET http://evil.example:${other}/\r\n`),
    plain("of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    plain("of TLS", helloFor("allowed.example").toString("latin1")),
    plain("of SOCKS", `\x05\x01\0\x05\x01\0\x03\x0cevil.example\x01\xbb`),
    plain("as another sandbox", get(`http://${foreign}/`, foreign)),
    plain(
      "with another's credentials",
      get(`http://evil.example:${other}/`, "x", "Proxy-Authorization: Bearer x\r\n"),
    ),
    [
      "a tunnel with a user that does not exist",
      hex(connectTo(`evil.example:${other}`, proxyUser("admin")), helloFor("evil.example")),
    ],
  ]);
}

/** Ways past the proxy. */
export function directWays({ other }: Place, gateways: readonly string[]): readonly string[] {
  const ipv4 = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "1.1.1.1", "8.8.8.8", "203.0.113.7", ...gateways];
  const ipv6 = ["::1", "fd00::1", "2606:4700:4700::1111", "fe80::1"];
  return [
    ...ipv4.flatMap((address) => [
      `tcp ${address} ${other}`,
      `tcp ${address} 53`,
      `udp ${address} 53`,
      `udp ${address} 443`,
    ]),
    ...ipv6.flatMap((address) => [`tcp6 ${address} ${other}`, `udp6 ${address} 53`]),
    "raw",
    ...["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"].map(
      (path) => `unix ${path}`,
    ),
  ];
}
