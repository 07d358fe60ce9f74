import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { randomId } from "../../../src/lib/random-id.ts";
import { execute, readAll } from "../../support/backend.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { sampled } from "../../support/seed.ts";
import { beside, comesBack, costOf, type House, newHouse } from "./attack.ts";
import { ada, configOf } from "./opened.ts";

const { signal } = new AbortController();
const output = async (backend: Backend, command: string) => (await execute(backend, command)).output;

/** Like what our own scripts say to each other, and what tools say when they fail. */
const IMITATIONS = [
  ...[
    "0",
    "0 moved",
    "\x1e",
    "\x1eMARK 0\n",
    "ended 0",
    "closed",
    "reported x",
    "started x 1",
    "ENOENT",
    "OUTSIDE",
  ],
  ...[
    "==> ./f <==\n",
    "\n==> .//./f <==\nroot",
    "MARK:81a4 5 0 x/\n",
    "f: No space left on device",
    "; exit 7 #",
  ],
  ...[
    "$(exit 7)",
    "`exit 7`",
    "'",
    '"',
    "\\",
    "'\\''",
    "-rf",
    "--help",
    "*",
    "[",
    "?",
    "a b",
    "\t",
    "é",
    "\u2028",
    "-n",
  ],
];

for (const image of sampled(["perl", "busybox"] as const, 2))
  describeWithEngine(`in a sandbox of the image ${image}`, (engine) => {
    let house: House;
    let attacker: Backend;
    beforeAll(async () => {
      house = await newHouse(engine, image);
      attacker = house.attacker;
    });

    test("names and contents that imitate our own output are treated as names and contents", async () => {
      const names = IMITATIONS.map((words) => words.replaceAll("/", "%"));
      const content = Buffer.from(IMITATIONS.join("\n"));
      for (const name of names) await attacker.write(`odd/${name}`, content, signal);
      const listed = await attacker.list("odd", signal);
      expect(listed.map(({ path, size }) => [path.slice("/workspace/odd/".length), size])).toEqual(
        names.toSorted().map((name) => [name, content.length]),
      );
      for (const name of names) expect((await readAll(attacker, `odd/${name}`)).equals(content)).toBe(true);
      expect((await attacker.glob("odd/*", ".", signal)).matches.length).toBe(names.length);
      const { matches } = await attacker.grep("^OUTSIDE$", "odd", undefined, signal);
      expect(new Set(matches.map(({ file }) => file)).size).toBe(names.length);
      expect(await execute(attacker, "cat odd/ENOENT")).toMatchObject({
        output: content.toString(),
        exitCode: 0,
      });
      await attacker.remove("odd", signal);
    });

    test("a folder of 5,000 files, and one at a depth of 300, work like any other", async () => {
      await execute(
        attacker,
        "mkdir many; cd many; seq 5000 | xargs touch; i=0; while [ $((i += 1)) -le 300 ]; do mkdir d && cd d; done; echo deep > bottom",
      );
      expect((await attacker.list("many", signal)).length).toBe(5001);
      const { matches } = await attacker.glob("**/bottom", ".", signal);
      expect(matches).toEqual([`${attacker.workdir}/many/${"d/".repeat(300)}bottom`]);
      expect(String(await readAll(attacker, matches[0] ?? ""))).toBe("deep\n");
      await attacker.remove("many", signal);
      expect((await attacker.list(".", signal)).map(({ path }) => path)).toEqual(["/workspace/f"]);
    });

    test("a command can contain any characters", async () => {
      const characters = Array.from({ length: 0x2ff }, (_, index) => String.fromCharCode(index + 1)).join("");
      const word = `'${characters.replaceAll("'", "'\\''")}'`;
      expect(await execute(attacker, `printf %s ${word}`)).toMatchObject({ output: characters, exitCode: 0 });
      for (const broken of ["'", '"', "(", "}", "<<E", "if", "\\", "case x in", "$(", "`", "exit 7; }"])
        expect((await execute(attacker, broken)).ended).toBeUndefined();
      await comesBack(attacker);
    });

    test.each([
      ["exec >&-; echo lost", /^(.* error: .*\n)?$/],
      ["exec 2>&- <&-; cat; echo said", /^said\n$/],
      ["exec > /dev/null 2>&1; echo lost", /^$/],
      ["cat; echo nothing to read", /^nothing to read\n$/],
      ["ulimit -n 3; echo few; cat f", /^few\n/],
      ["ulimit -f 0; ulimit -s 64; echo small", /^small\n$/],
      ["umask 0777; set -eu; kill -9 $$", /^$/],
      ["trap '' TERM INT HUP QUIT; echo deaf; kill -TERM $$; echo still", /^deaf\nstill\n$/],
      [
        "cd /; rm -rf /workspace/d; mkdir /workspace/d; cd /workspace/d; rmdir ../d; pwd > /dev/null; echo nowhere",
        /^nowhere\n$/,
      ],
      ["N=x r=9 c='rm -rf .' S=/ T=/ R=/; export N r c S T R; echo ours", /^ours\n$/],
    ])("affects only itself with `%s`", async (command, expected) => {
      const result = await execute(attacker, command);
      expect(result.output).toMatch(expected);
      expect(result.ended).toBeUndefined();
      // At the first try: nothing has to be healed.
      expect((await execute(attacker, "echo back")).output).toBe("back\n");
      await comesBack(attacker);
    });

    test("a command that ignores signals is killed at its timeout", async () => {
      const result = await execute(
        attacker,
        "trap '' TERM INT HUP; exec > /dev/null 2>&1; while :; do sleep 1; done",
        { timeoutMs: 300 },
      );
      expect(result.ended).toBe("timeout");
      expect(await output(attacker, "ps | grep -c '[s]leep 1$'")).toBe("0\n");
    });

    test("its own tools, functions and start-up files do not affect the server's shells", async () => {
      const tools = "stat find head tail mv rm ln cat dd mkdir chmod readlink sed grep setsid sh perl ls";
      const fake = `mkdir -p bin; for t in ${tools}; do printf '#!/usr/bin/sh\\necho fake\\n' > bin/$t; cp bin/$t .; done; chmod +x bin/* ${tools}`;
      const startUp =
        "for f in .profile .bashrc .bash_profile .shrc .kshrc .perlrc .env; do echo 'echo fake; PATH=/workspace/bin; cat() { echo fake; }' > $f; done";
      await execute(
        attacker,
        `${fake}; ${startUp}; mkdir -p perl; echo 'print "fake"; 1;' | tee strict.pm POSIX.pm Fcntl.pm > /dev/null; head -c 4096 /dev/urandom > preload.so`,
      );
      const export_ =
        "export PATH=/workspace/bin:/workspace ENV=/workspace/.env BASH_ENV=/workspace/.env PERL5LIB=/workspace LD_PRELOAD=/workspace/preload.so";
      await execute(attacker, `${export_}; cat() { echo fake; }; alias ls='echo fake'`);
      for (let round = 0; round < 2; round++) {
        await comesBack(attacker);
        expect((await attacker.stat("f", signal)).size).toBe(4);
        expect(await attacker.write("g", Buffer.alloc(200_000, 97), signal)).toBe(200_000);
        expect((await readAll(attacker, "g")).length).toBe(200_000);
        await attacker.edit("g", "aaa", "bbb", signal);
        expect((await attacker.grep("bbb", "g", undefined, signal)).matches.length).toBe(1);
        expect((await attacker.list("bin", signal)).length).toBe(tools.split(" ").length);
        expect((await attacker.glob("bin/*", ".", signal)).matches.length).toBe(tools.split(" ").length);
        await attacker.remove("g", signal);
        expect(await output(attacker, "cat f; echo $PATH; echo $LD_PRELOAD")).toMatch(
          /^kept\/usr\/local\/bin:[^w]*\n\n$/,
        );
        await house.restart();
      }
    });

    test("its own tools affect only the user if an image looks for tools in the workspace", async () => {
      const made = await engine.docker.createContainer({ Image: await engine.image(image) });
      const repo = `skein-test/path-${randomId().toLowerCase()}`;
      await made.commit({ repo, changes: "ENV PATH=/workspace/bin:/usr/bin" });
      await made.remove();
      const config = { ...(await configOf(engine, image)), name: "path", image: repo };
      onTestFinished(async () => {
        await house.pool.stop(ada, config);
        await engine.docker.getImage(repo).remove({ force: true });
      });
      const own = await house.pool.get(ada, config);
      await execute(
        own,
        "mkdir bin; for t in stat find head cat setsid; do printf '#!/usr/bin/sh\\nexec yes fake\\n' > bin/$t; done; chmod +x bin/*",
      );
      const limit = AbortSignal.timeout(5000);
      const calls = () => [own.stat("f", limit), own.list(".", limit), own.glob("*", ".", limit)];
      const cost = await costOf(() => beside(house, Promise.allSettled(calls())));
      expect(cost.mib).toBeLessThan(256);
      expect(cost.deafMs).toBeLessThan(2000);
      await comesBack(attacker);
    });
  });
