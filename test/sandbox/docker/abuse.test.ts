import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { execute, readAll, refuses } from "../../support/backend.ts";
import { describeWithEngine, describeWithOwnEngine, type Engine } from "../../support/engine.ts";
import { sampled } from "../../support/seed.ts";
import { beside, comesBack, costOf, type House, insist, KEPT, newHouse } from "./attack.ts";
import { configOf } from "./opened.ts";

const MIB = 1024 ** 2;
const PIDS = 64;
const { signal } = new AbortController();
const perl = (script: string) => `LC_ALL=C perl -e '${script}'`;
const output = async (backend: Backend, command: string) => (await insist(backend, command)).output;

/** In processor seconds, as the engine counts them. */
async function processorTime({ docker }: Engine, { world }: House, user: string): Promise<number> {
  const found = await docker.listContainers({ filters: { label: [`skein.deployment=${world.deployment}`] } });
  const container = found.find(({ Labels }) => Labels["skein.place"]?.includes(`"${user}"`));
  const stats = await docker.getContainer(container?.Id ?? "").stats({ stream: false, "one-shot": true });
  return stats.cpu_stats.cpu_usage.total_usage / 1e9;
}

describeWithEngine("resources that a user's commands can exhaust", (engine) => {
  let house: House;
  let attacker: Backend;
  beforeAll(async () => {
    house = await newHouse(engine, "perl", { pids: PIDS, cpus: 0.5 });
    attacker = house.attacker;
  });

  describe("processes", () => {
    test.each([
      ["shells", "b() { b | b & }; b; sleep 60"],
      ["perl", "perl -e 'fork while 1'"],
      [
        "what leaves its session and its environment",
        "echo 'while :; do env -i setsid sh ./bomb & done' > bomb; while :; do env -i setsid sh ./bomb & done",
      ],
    ])(
      "a fork bomb of %s costs the user at most a few commands, and others nothing",
      async (_, bomb) => {
        await beside(house, insist(attacker, `(${bomb}) 2> /dev/null`, { timeoutMs: 1500 }));
        await beside(house, comesBack(attacker));
        await house.restart();
        expect(Number(await output(attacker, "ls -d /proc/[0-9]* | wc -l"))).toBeLessThan(20);
        await comesBack(attacker);
      },
      300_000,
    );

    test("never exceed their limit", async () => {
      const count = perl(
        "while (defined(my $p = fork)) { $p or sleep 60, exit; push @p, $p } print scalar @p; kill 9, @p; wait for @p",
      );
      const { output: counted, exitCode } = await insist(attacker, count);
      expect(exitCode).toBe(0);
      expect(Number(counted)).toBeLessThan(PIDS);
    });

    test("a thousand orphans are reaped", async () => {
      // Where there is no room for one more, those before it have not been cleared away yet.
      const orphan =
        "select undef, undef, undef, 0.01 until defined(my $p = fork); $p or fork, exit; waitpid $p, 0";
      const result = await beside(house, insist(attacker, perl(`for (1 .. 1000) { ${orphan} }`)));
      expect(result).toMatchObject({ output: "", exitCode: 0 });
      const dead = () => output(attacker, "grep -ls ') Z 1 ' /proc/[0-9]*/stat | wc -l");
      await expect.poll(dead).toBe("0\n");
    });

    test("cannot end, stop or replace the process that keeps their container", async () => {
      const signals = "for s in KILL TERM INT STOP; do kill -s $s 1 && echo killed by $s; done 2> /dev/null";
      expect(await output(attacker, `${signals}; echo > /proc/1/mem; readlink /proc/1/exe`)).not.toMatch(
        /killed|docker/,
      );
      await comesBack(attacker);
    });

    test("more open files than allowed are refused, even after raising the limit", async () => {
      const open = perl("while (open my $f, q(<), q(/dev/null)) { push @f, $f } print scalar @f");
      expect(Number(await beside(house, output(attacker, open)))).toBeLessThan(4096);
      expect(
        await output(
          attacker,
          "ulimit -n 4096 && ulimit -n; ulimit -n 5000; ulimit -f unlimited; ulimit -c 1",
        ),
      ).toMatch(/^4096\n(.*not permitted\n){3}$/);
    });
  });

  describe("memory", () => {
    test.each([
      ["one command", perl("$x .= q(x) x 1e6 while 1")],
      [
        "many processes",
        `for i in 1 2 3 4 5 6 7 8; do ${perl("$x = q(x) x 3e7; sleep 60")} & done; wait; kill -9 $$`,
      ],
    ])("exhausted by %s costs the user at most that command", async (_, command) => {
      const result = await beside(house, insist(attacker, command, { timeoutMs: 2000 }));
      expect(result.ended).toMatch(/oom|timeout/);
      await comesBack(attacker);
    });

    test("is freed when its users have ended, with everything that they left", async () => {
      const leave = perl(
        "for (1 .. 40) { my $id = shmget(0, 8 << 20, 0600 | 01000); shmwrite($id, q(x) x (8 << 20), 0, 8 << 20) }",
      );
      await insist(attacker, leave);
      expect(await output(attacker, perl("$x = q(x) x 6e7; print length $x"))).toBe("60000000");
    });

    test.each(["/tmp", "/dev/shm"])(
      "in %s has space for a limited number of bytes and files",
      async (folder) => {
        const full = "No space left on device";
        const bytes = `dd if=/dev/zero of=${folder}/big bs=65536 2>&1; stat -c %s ${folder}/big; rm ${folder}/big`;
        expect(await output(attacker, bytes)).toMatch(new RegExp(`${full}[^]*\n${16 * MIB}\n$`));
        const files = perl(`for (1 .. 1e6) { open my $f, q(>), qq(${folder}/$_) or die qq($_ $!) }`);
        expect(await output(attacker, `${files} 2>&1`)).toMatch(new RegExp(`^4\\d{3} ${full}`));
        expect(
          await output(attacker, `echo works; rm -rf ${folder}/*; echo > ${folder}/f && echo again`),
        ).toBe("works\nagain\n");
      },
    );
  });

  describe("processor", () => {
    test("is limited, and neighbours get their share", async () => {
      const other = await house.pool.get(
        { tenant: "acme", user: "eve" },
        await configOf(engine, "busybox", { cpus: 0.5 }),
      );
      await execute(other, "true");
      const times = () => Promise.all(["ada", "eve"].map((user) => processorTime(engine, house, user)));
      const hog = (count: number) =>
        `i=0; while [ $((i += 1)) -le ${count} ]; do while :; do :; done & done; wait`;
      const [idle = 0] = (await times()).slice(1);
      const leave = new AbortController();
      const neighbour = execute(other, hog(1), { signal: leave.signal, timeoutMs: 300_000 });
      await expect.poll(async () => (await times())[1]).toBeGreaterThan(idle + 0.05);
      const [began, before] = [performance.now(), await times()];
      await beside(house, insist(attacker, hog(20), { timeoutMs: 2000 }));
      const after = await times();
      const seconds = (performance.now() - began) / 1000;
      leave.abort();
      await neighbour;
      const [hers = 0, others = 0] = after.map((time, index) => time - (before[index] ?? 0));
      expect(hers).toBeLessThan(0.5 * seconds * 1.3);
      expect(others).toBeGreaterThan(hers / 3);
    });
  });

  describe("output", () => {
    test.each([
      ["output", ""],
      ["error output", ">&2"],
    ])("that never ends as %s is stopped, and takes little of the server", async (_, where) => {
      const cost = await costOf(async () => {
        const result = await beside(
          house,
          insist(attacker, `dd if=/dev/zero bs=65536 count=160000 ${where}`),
        );
        expect(result).toMatchObject({ ended: "output-limit", exitCode: null });
        expect(result.output.length).toBeLessThan(200_000);
      });
      expect(cost.mib).toBeLessThan(256);
    });

    test("in a line of 40 MB, or a sparse file, can still be read and searched", async () => {
      await execute(attacker, "head -c 40000000 /dev/zero | tr '\\0' a > line; truncate -s 40000000 hole");
      expect((await execute(attacker, "cat line")).omitted).toBeGreaterThan(39_000_000);
      expect((await readAll(attacker, "hole")).equals(Buffer.alloc(40_000_000))).toBe(true);
      expect((await attacker.grep("aaa|\\x00", ".", undefined, signal)).matches).toEqual([]);
      await execute(attacker, "rm line hole");
    });

    test("in the background does not keep the server busy, and only eight processes can continue", async () => {
      for (let n = 0; n < 10; n++) await execute(attacker, "yes spam & echo begun");
      const [began, before] = [performance.now(), process.cpuUsage()];
      const cost = await costOf(() => beside(house, new Promise((resolve) => setTimeout(resolve, 1000))));
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1000).toBeLessThan(0.7 * (performance.now() - began));
      expect(cost.mib).toBeLessThan(64);
      const running = () => output(attacker, "grep -lsx yes /proc/[0-9]*/comm | wc -l");
      await expect.poll(running).toBe("8\n");
      await house.restart();
    });
  });
});

describeWithOwnEngine("space that a user's files can exhaust", (engine) => {
  const BYTES = 64 * MIB;
  let house: House;
  let attacker: Backend;

  /** Of the host's disk. */
  async function taken(): Promise<number[]> {
    const folder = join(house.world.dataDir, "volumes");
    const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).blocks * 512);
    return Promise.all(sizes);
  }

  async function* stream() {
    for (let n = 0; n < 30; n++) yield Buffer.alloc(100_000, n);
  }
  async function takesNoMore() {
    const before = await names();
    for (const data of [Buffer.from("text"), Buffer.alloc(3 * MIB), stream()])
      await refuses(() => attacker.write("new/one", data, signal), "backend_failed", "the disk is full");
    await refuses(
      () => attacker.edit("f", KEPT, "x".repeat(MIB), signal),
      "backend_failed",
      "the disk is full",
    );
    expect(String(await readAll(attacker, "f"))).toBe(KEPT);
    expect(await names()).toEqual(before);
  }
  const names = () =>
    output(attacker, "find . -type f ! -path './big' ! -path './rest' ! -path './many/*' | sort");

  describe.each(sampled(["perl", "busybox"] as const, 2))("in a workspace of the image %s", (image) => {
    beforeAll(async () => {
      house = await newHouse(engine, image);
      attacker = house.attacker;
    });

    test("is limited, in one file", async () => {
      const fill = "dd if=/dev/zero of=big bs=65536; while echo more >> rest; do :; done";
      expect(await beside(house, execute(attacker, fill))).toMatchObject({
        output: expect.stringContaining("No space left on device"),
      });
      const { size } = await attacker.stat("big", signal);
      expect(size).toBeGreaterThan(0.8 * BYTES);
      expect(size).toBeLessThan(BYTES);
      for (const bytes of await taken()) expect(bytes).toBeLessThanOrEqual(BYTES + MIB);
      await takesNoMore();
      await attacker.remove("big", signal);
      expect(await attacker.write("new/one", Buffer.alloc(3 * MIB), signal)).toBe(3 * MIB);
      await attacker.remove("new", signal);
    });

    test("is limited, in many files", async () => {
      const fill =
        "mkdir many; cd many; yes '' | head -n 100000 | awk '{ print NR }' | xargs touch 2>&1 | tail -n 1";
      // A failure shows the whole result.
      expect(JSON.stringify(await beside(house, execute(attacker, fill)))).toContain(
        "No space left on device",
      );
      await takesNoMore();
      await attacker.remove("many", signal);
      expect(await attacker.write("new/one", Buffer.alloc(3 * MIB), signal)).toBe(3 * MIB);
      await attacker.remove("new", signal);
    });

    test("is limited, in a sparse file", async () => {
      const claim = `truncate -s ${2 * BYTES} huge; dd if=/dev/zero of=huge bs=1 count=1 seek=${2 ** 40}`;
      await execute(attacker, claim);
      const size = await attacker.stat("huge", signal).then(
        (found) => found.size,
        () => 0,
      );
      expect(size).toBeLessThanOrEqual(BYTES);
      await comesBack(attacker);
    });
  });
});
