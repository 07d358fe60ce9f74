import { createServer } from "node:net";
import { networkInterfaces, release, totalmem } from "node:os";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { randomId } from "../../../src/lib/random-id.ts";
import { execute, refuses } from "../../support/backend.ts";
import { describeWithEngine, describeWithOwnEngine } from "../../support/engine.ts";
import { beside, comesBack, type House, newHouse, SECRET } from "./attack.ts";
import { ada, configOf } from "./opened.ts";

const KEY = `sk-${randomId()}`;
const { signal } = new AbortController();
const output = async (backend: Backend, command: string) => (await execute(backend, command)).output;
const perl = (script: string) => `LC_ALL=C perl -e '${script}'`;
const lines = (...commands: string[]) => commands.join("\n");

/** What a kernel is asked for that must not be had: their numbers on x86_64 and aarch64, and what they are given. */
const CALLS: Readonly<Record<string, readonly [number, number, string]>> = {
  ...{ keyctl: [250, 219, "0, -3, 0, 0, 0"], add_key: [248, 217, "0, 0, 0, 0, 0"] },
  ...{ ptrace: [101, 117, "16, 1, 0, 0"], mount: [165, 40, "0, 0, 0, 0, 0"], umount2: [166, 39, "0, 0"] },
  ...{
    "unshare a user": [272, 97, "0x10000000"],
    "unshare mounts": [272, 97, "0x20000"],
    setns: [308, 268, "0, 0"],
  },
  ...{
    bpf: [321, 280, "0, 0, 0"],
    perf_event_open: [298, 241, "0, 0, 0, 0, 0"],
    userfaultfd: [323, 282, "0"],
  },
  ...{ open_by_handle_at: [304, 265, "0, 0, 0"], process_vm_readv: [310, 270, "1, 0, 0, 0, 0, 0"] },
  ...{
    init_module: [175, 105, "0, 0, 0"],
    kexec_load: [246, 104, "0, 0, 0, 0"],
    reboot: [169, 142, "0, 0, 0, 0"],
  },
  ...{
    swapon: [167, 224, "0, 0"],
    settimeofday: [164, 170, "0, 0"],
    acct: [163, 89, "0"],
    syslog: [103, 116, "3, 0, 0"],
  },
  ...{ pivot_root: [155, 41, "0, 0"], chroot: [161, 51, "0"], quotactl: [179, 60, "0, 0, 0, 0"] },
};

describeWithEngine("from inside a sandbox", (engine) => {
  let house: House;
  let attacker: Backend;
  const run = (command: string) => output(attacker, command);
  beforeAll(async () => {
    process.env.SKEIN_TEST_API_KEY = KEY;
    house = await newHouse(engine, "perl", { pids: 100, cpus: 0.5 });
    attacker = house.attacker;
  });
  afterAll(() => {
    delete process.env.SKEIN_TEST_API_KEY;
  });

  test("all privileges are dropped and cannot be regained", async () => {
    const status =
      "grep -hE '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -s '\\t ' ' '";
    const none = "0000000000000000";
    expect((await run(status)).split("\n").map((line) => line.trim())).toEqual([
      ...["Uid: 1000 1000 1000 1000", "Gid: 1000 1000 1000 1000", "Groups: 1000"],
      ...["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map((name) => `${name}: ${none}`),
      ...["NoNewPrivs: 1", "Seccomp: 2", ""],
    ]);
  });

  test("the configured limits are in force", async () => {
    const first =
      "cd /sys/fs/cgroup; cat pids/pids.max pids.max; cat memory/memory.limit_in_bytes memory.max";
    const then = "cat memory/memory.memsw.limit_in_bytes memory.swap.max; cat cpu/cpu.cfs_quota_us cpu.max";
    const [pids, memory, swap, cpu] = (await run(`(${first}; ${then}) 2> /dev/null`)).split("\n");
    expect([pids, memory]).toEqual(["100", `${128 * 1024 ** 2}`]);
    // With memory and swap counted together, or apart.
    expect([memory, "0"]).toContain(swap);
    expect(cpu).toMatch(/^50000/);
    expect(await run("cat /proc/self/oom_score_adj; ulimit -c")).toBe("500\n0\n");
  });

  test("only the workspace, /tmp and /dev/shm can be changed", async () => {
    const folders =
      "/ /etc /usr /usr/bin /root /var /dev /proc /sys /sys/fs/cgroup /proc/sys/kernel /workspace/..";
    const write = `for d in ${folders}; do touch $d/x 2> /dev/null && echo $d; done`;
    const files = "/proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /etc/passwd";
    const groups =
      "/sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/*.limit_in_bytes";
    const append = `for f in ${files} ${groups} /sys/kernel/* /sys/power/*; do (echo 1 >> $f) 2> /dev/null && echo $f; done`;
    expect(
      await run(
        `${write}; ${append}; for n in -1000 -1; do (echo $n > /proc/self/oom_score_adj) 2> /dev/null && echo $n; done`,
      ),
    ).toBe("");
    expect(await run("touch /etc/x 2>&1; rm -f /usr/bin/perl 2>&1; mkdir /var/x 2>&1")).toMatch(
      /^(.*Read-only file system\n){3}$/,
    );
    expect(await run("find / -xdev -writable 2> /dev/null | grep -v ^/workspace")).toBe("");
  });

  test("administrators' tools have no effect", async () => {
    const tools = [
      ...[
        "mount -t tmpfs none m",
        "mount -o remount,rw /",
        "mount --bind / m",
        "umount /tmp",
        "umount /proc/kcore",
      ],
      ...["unshare -r true", "unshare -m true", "unshare -n true", "unshare -p true", "nsenter -t 1 -m true"],
      ...[
        "mknod m/b b 254 0",
        "mknod m/c c 1 1",
        "chown 0 f",
        "chgrp 0 f",
        "chroot . /bin/sh",
        "pivot_root . m",
      ],
      ...[
        "hostname x",
        "swapoff -a",
        "insmod f",
        "reboot -f",
        "dmesg",
        "losetup /dev/loop0 f",
        "su root -c true",
      ],
      ...["ip link add d type dummy", "ip link set lo down", "renice -n -5 -p $$", "chrt -f 1 true"],
    ];
    const tried = tools.map((tool) => `(${tool}) > /dev/null 2>&1 < /dev/null && echo '${tool}'`);
    expect(await run(lines("mkdir -p m", ...tried, "rm -rf m"))).toBe("");
  });

  test("no system call that could lead out has an effect", async () => {
    const at = { x86_64: 0, aarch64: 1 }[(await run("uname -m")).trim()];
    if (at === undefined) return;
    const tried = Object.entries(CALLS).map(
      ([name, [...call]]) => `$! = 0; syscall(${call[at]}, ${call[2]}); print qq(${name}: $!\\n) if $! != 1;`,
    );
    const asked = `print syscall(${at === 0 ? 39 : 172}) == $$ ? qq(asked\\n) : qq(not asked\\n);`;
    expect(await run(perl([asked, ...tried].join(" ")))).toBe("asked\n");
  });

  test("a setuid program in the image does not gain root", async () => {
    const image = `skein-test/setuid-${randomId().toLowerCase()}`;
    const Cmd = ["sh", "-c", "cp /usr/bin/perl /usr/bin/root && chmod 4755 /usr/bin/root"];
    const made = await engine.docker.createContainer({ Image: await engine.image("perl"), User: "0", Cmd });
    await made.start();
    await made.wait();
    await made.commit({ repo: image });
    await made.remove();
    const config = { ...(await configOf(engine, "perl")), name: "setuid", image };
    onTestFinished(async () => {
      await house.pool.stop(ada, config);
      await engine.docker.getImage(image).remove({ force: true });
    });
    const backend = await house.pool.get(ada, config);
    expect(await output(backend, "stat -c %a /usr/bin/root; LC_ALL=C root -e 'print $>'")).toBe("4755\n1000");
    expect(await output(backend, "cp /usr/bin/perl p; chmod 4755 p; LC_ALL=C ./p -e 'print $>'")).toBe(
      "1000",
    );
  });

  test("nothing of the process that keeps its container, or of the kernel, can be read or changed", async () => {
    const files =
      "/proc/1/environ /proc/1/mem /proc/1/maps /proc/kcore /proc/keys /proc/kmsg /proc/self/pagemap";
    const read = `for f in ${files} /dev/mem /dev/kmsg /dev/sda /dev/vda; do [ -z "$(head -c 9 $f | tr -d '\\0')" ] || echo $f; done`;
    expect(
      await run(`(${read}; ls /proc/1/root /proc/1/cwd /proc/1/fd; ls /sys/firmware) 2> /dev/null`),
    ).toMatch(/^(\/proc\/1\/fd:\n)?$/);
    expect(await run("ls -A /dev; ls -A /dev/mqueue")).toBe(
      "fd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n",
    );
    await comesBack(attacker);
  });

  test("no secret of the server, and nothing of other users, can be found", async () => {
    const found = (words: readonly string[]) => {
      // Not as a whole in the command, which is itself to be found.
      const pattern = words.map((word) => `-e "${word.slice(0, 2)}""${word.slice(2)}"`).join(" ");
      const places = "/etc /usr /var /root /tmp /workspace /run /dev/shm /sys/devices/virtual/block";
      const own =
        "/proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/cgroup /proc/self/mountinfo /proc/net/unix";
      return run(
        `grep -rlsaF ${pattern} ${places} ${own}; cat /sys/block/*/loop/backing_file /proc/partitions 2> /dev/null`,
      );
    };
    expect(await found([KEY, SECRET, "acme", house.world.deployment])).toBe("");
    expect(await found(["kept"])).toContain("/workspace/f\n");
    const variables =
      "PATH HOSTNAME HOME WORKSPACE TMPDIR LANG TERM PAGER PS1 ENV GIT_TERMINAL_PROMPT SKEIN_JOB PWD SHLVL";
    const known = new Set(variables.split(" "));
    expect((await run("env | sed 's/=.*//'")).split("\n").filter((name) => name && !known.has(name))).toEqual(
      [],
    );
    expect(await run("hostname; id -un")).toBe("sandbox\nsandbox\n");
  });

  test("no network address can be reached: not the host, the engine, a neighbour or a cloud's metadata", async () => {
    let reached = 0;
    const listen = async (place: { host: string; port: number } | string) => {
      const server = createServer((socket) => {
        reached++;
        socket.end("reached\n");
      });
      await new Promise<void>((resolve) => server.listen(place, resolve));
      onTestFinished(() => void server.close());
      return server.address();
    };
    const abstract = `skein-${randomId()}`;
    await listen(`\0${abstract}`);
    const listening = [
      await listen({ host: "127.0.0.1", port: 0 }),
      await listen({ host: "0.0.0.0", port: 0 }),
    ];
    const ports = [
      ...listening.map((address) => (typeof address === "object" ? address?.port : 0)),
      80,
      2375,
      2376,
    ];
    const own = Object.values(networkInterfaces()).flatMap((each) =>
      (each ?? []).map(({ address }) => address),
    );
    const hosts = [
      ...new Set([...own, "127.0.0.1", "172.17.0.1", "169.254.169.254", "host.docker.internal", "sandbox"]),
    ];
    const tried = hosts.flatMap((host) => ports.map((port) => `nc -w 1 ${host} ${port} < /dev/null`));
    // A listener can see the end of its visitor's input before it has sent its own, so both try again.
    const listener =
      "while :; do echo reached | nc -l -p 7777; done > /dev/null & until nc 127.0.0.1 7777 | grep reached; do :; done; kill $!";
    expect(await run(`(${listener}) 2> /dev/null < /dev/null`)).toBe("reached\n");
    expect(await run(`(${tried.join("; ")}; nc 169.254.169.254 80 < /dev/null) 2> /dev/null`)).toBe("");
    const connect = `socket(my $s, 1, 1, 0); print connect($s, pack(q(Sa*), 1, qq(\\0${abstract}))) ? 1 : 0`;
    expect(await run(perl(connect))).toBe("0");
    expect(reached).toBe(0);
    expect(
      await run("sed 1,2d /proc/net/dev | cut -d : -f 1 | tr -d ' '; cat /proc/net/route | sed 1d"),
    ).toBe("lo\n");
    expect(await run("find / -xdev -type s 2> /dev/null; find / -name '*.sock' 2> /dev/null")).toBe("");
    expect(
      await run(
        `ls ${engine.host.replace(/^\w+:\/\//, "")} /run/docker.sock /var/run/docker.sock 2> /dev/null`,
      ),
    ).toBe("");
  });

  test("a file tool's path can lead only into the workspace", async () => {
    await execute(
      attacker,
      "ln -s / root; ln -s /proc/self proc; ln -s /proc/1/root out; mkdir -p d; ln -s ../../etc d/etc",
    );
    const paths = [
      "/etc/passwd",
      "../etc/passwd",
      "root/etc/passwd",
      "proc/environ",
      "proc/root/etc/passwd",
      "out/etc",
      "d/etc/passwd",
    ];
    for (const path of paths) {
      await refuses(() => attacker.stat(path, signal), "backend_refused", path);
      await refuses(
        () => attacker.read(path, {}, signal)[Symbol.asyncIterator]().next(),
        "backend_refused",
        path,
      );
      await refuses(() => attacker.write(path, Buffer.from("x"), signal), "backend_refused", path);
      await refuses(() => attacker.edit(path, "root", "x", signal), "backend_refused", path);
      await refuses(() => attacker.list(path, signal), "backend_refused", path);
      await refuses(() => attacker.grep("root", path, undefined, signal), "backend_refused", path);
      await refuses(() => attacker.remove(path, signal), "backend_refused", path);
    }
    await attacker.remove("root", signal);
    expect(await run("ls -d /etc/passwd /usr/bin/perl")).toBe("/etc/passwd\n/usr/bin/perl\n");
  });
});

describeWithOwnEngine("from inside a sandbox, despite these defences,", (engine) => {
  test("it can read the host's memory size, the kernel and the location of its own files", async () => {
    const { attacker } = await newHouse(engine, "busybox");
    const kib = /MemTotal: +(\d+) kB/.exec(await output(attacker, "cat /proc/meminfo"))?.[1];
    expect(Number(kib) * 1024).toBe(totalmem());
    expect(await output(attacker, "uname -r")).toBe(`${release()}\n`);
    expect(await output(attacker, "grep ^overlay /proc/mounts")).toContain(
      engine.host.replace(/^unix:\/\/(.*)\/[^/]*$/, "$1"),
    );
  });

  test("it can exhaust resources that the kernel counts for all sandboxes, and a neighbour's files and commands continue", async () => {
    const house = await newHouse(engine, "perl");
    const terminals = "use Fcntl; sysopen($f, q(/dev/ptmx), O_RDWR | O_NOCTTY) or last; push @f, $f";
    const pipes = "pipe($r, $w) or last; fcntl($w, 1031, 1 << 20); push @f, $r, $w";
    const watches = "syscall((qx(uname -m) =~ /x86/) ? 294 : 26, 0) >= 0 or last";
    const hold = (each: string) => `${perl(`while (1) { ${each} } sleep 60`)} &`;
    const command = `ulimit -n 4096; ${[terminals, pipes, pipes, watches].map(hold).join(" ")} wait`;
    expect(await beside(house, execute(house.attacker, command, { timeoutMs: 3000 }))).toMatchObject({
      ended: "timeout",
    });
  });
});
