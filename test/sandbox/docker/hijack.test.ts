import { beforeAll, expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { drained, execute, readAll, refuses } from "../../support/backend.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { sampled } from "../../support/seed.ts";
import { beside, comesBack, costOf, type House, insist, newHouse, SECRET } from "./attack.ts";

const { signal } = new AbortController();
const output = async (backend: Backend, command: string) => (await insist(backend, command)).output;

/** A command for each of the others' processes: `$p`. Repeated until it is ended. */
const onEach = (command: string) => `while :; do
  for p in /proc/[0-9]*; do p=\${p#/proc/}; [ $p = $$ ] || { ${command}; }; done 2> /dev/null
done`;
/** The same, once. */
const once = (command: string) => onEach(command).replace(/^while :; do/, "for i in 1; do");

/** All that can be asked for, at once, with what came of it; each gives up after a while. */
async function askAll(backend: Backend, path: string): Promise<string[]> {
  const limit = AbortSignal.timeout(3000);
  const read = async () => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of backend.read(path, {}, limit)) chunks.push(chunk);
    return String(Buffer.concat(chunks));
  };
  const asked = [
    read(),
    backend.stat(path, limit),
    backend.list(".", limit),
    backend.glob("**", ".", limit),
    backend.grep(".", ".", undefined, limit),
    backend.write(path, Buffer.from("written"), limit),
    backend.edit(path, "written", "edited", limit),
    drained(backend.exec("echo run", { signal: limit, timeoutMs: 3000 })),
    backend.remove(path, limit),
  ];
  const settled = await Promise.allSettled(asked);
  return settled.map(
    (each) => JSON.stringify(each.status === "fulfilled" ? each.value : String(each.reason)) ?? "",
  );
}

for (const image of sampled(["perl", "busybox"] as const, 2))
  describeWithEngine(
    `the server's processes in a sandbox of the image ${image}, attacked by its user,`,
    (engine) => {
      let house: House;
      let attacker: Backend;
      beforeAll(async () => {
        house = await newHouse(engine, image, { pids: 128, cpus: 0.5 });
        attacker = house.attacker;
      });

      test.each([
        [
          "garbage in its input and output",
          `${onEach("head -c 4096 /dev/urandom > /proc/$p/fd/1")} & ${onEach("head -c 99 /dev/urandom > /proc/$p/fd/2")} &
        ${onEach("head -c 256 /dev/urandom > /proc/$p/fd/0")} & wait`,
        ],
        [
          "theft of its input and output",
          `${onEach("cat /proc/$p/fd/0 > /dev/null & cat /proc/$p/fd/1 > /dev/null & sleep 0.2")}`,
        ],
        ["output without end", `${once("yes > /proc/$p/fd/1 & yes > /proc/$p/fd/2 &")}; sleep 60`],
        [
          "tools of the user's own",
          `${once("printf '%s() { yes; }\\n' stat head find cat tail dd kill > /proc/$p/fd/0")}; sleep 60`,
        ],
      ])(
        "are at most lost, by %s: all calls are answered, and others notice nothing",
        async (_, command) => {
          const attack = new AbortController();
          const attacking = insist(attacker, `(${command}) 2> /dev/null`, {
            signal: attack.signal,
            timeoutMs: 300_000,
          });
          attacking.catch(() => attack.abort());
          const cost = await costOf(async () => {
            for (let round = 0; round < 2; round++) {
              const answers = await beside(house, askAll(attacker, "target"));
              expect(answers.join("\n")).not.toContain(SECRET);
            }
          });
          attack.abort();
          await attacking;
          expect(cost.mib).toBeLessThan(256);
          expect(cost.deafMs).toBeLessThan(2000);
          await house.restart();
          await comesBack(attacker);
        },
        300_000,
      );

      test("recover each time they are killed", async () => {
        for (let n = 0; n < 4; n++) {
          await beside(house, insist(attacker, "kill -9 -1; sleep 300"));
          await comesBack(attacker);
        }
      });

      test("recover when they are stopped, and so do commands", async () => {
        await insist(attacker, "(sleep 0.2; kill -STOP -1) > /dev/null 2>&1 &");
        await insist(attacker, "sleep 1", { timeoutMs: 500 });
        await beside(house, comesBack(attacker));
        await comesBack(attacker);
      });
    },
  );

describeWithEngine("the server's processes in a sandbox", (engine) => {
  test("cannot keep the server busy by listing far more files than exist", async () => {
    const house = await newHouse(engine, "busybox");
    const flood = "head -c 1300000 /dev/zero | tr '\\000' '\\n' | sed \"s/.*/$N:81a4 0 0 x\\//\"";
    const tools = `stat() { ${flood}; }\nfind() { head -c 30000000 /dev/zero; }\n`;
    await house.attacker.write("tools", Buffer.from(tools), signal);
    await execute(house.attacker, once("cat tools > /proc/$p/fd/0"));
    const cost = await costOf(async () => {
      for (const tell of [house.attacker.list(".", signal), house.attacker.glob("**", ".", signal)])
        await beside(house, Promise.allSettled([tell]));
    });
    expect(cost.deafMs).toBeLessThan(2000);
    expect(cost.mib).toBeLessThan(512);
  });
});

for (const image of sampled(["perl", "busybox"] as const, 2))
  describeWithEngine(`the workspace of the image ${image}, attacked by its user,`, (engine) => {
    let house: House;
    let attacker: Backend;
    beforeAll(async () => {
      house = await newHouse(engine, image);
      attacker = house.attacker;
    });

    test.each([
      ["a file", "echo > .skein"],
      ["a pipe", "mkfifo .skein"],
      ["a link", "ln -s /tmp/away .skein"],
      ["a folder that no one may enter", "mkdir -m 0 .skein"],
      ["a folder with a file in it", "mkdir .skein; echo > .skein/staging"],
      ["a folder with a pipe in it", "mkdir .skein; mkfifo .skein/staging"],
      ["a folder with a link in it", "mkdir .skein; ln -s /tmp/away .skein/staging"],
    ])("stores complete files, or explains why not, with %s in place of staging", async (_, put) => {
      await insist(attacker, `mkdir -p /tmp/away; rm -rf .skein; ${put}`);
      for (const data of [Buffer.from("text"), Buffer.alloc(3_000_000, 97)]) {
        const written = attacker.write("g", data, signal).then(
          async () => expect((await readAll(attacker, "g")).equals(data)).toBe(true),
          async (error: unknown) => {
            expect(error).toMatchObject({ code: expect.stringMatching(/^backend_(refused|failed)$/) });
            await refuses(() => attacker.stat("g", signal), "not_found", "`g`");
          },
        );
        await beside(house, written);
      }
      expect(String(await readAll(attacker, "f"))).toBe("kept");
      // The home of commands is made by the user's own shell, wherever `.skein` leads it.
      expect(
        await output(
          attacker,
          "rm -rf /tmp/away/home; ls -A /tmp/away; chmod -R 700 .skein; rm -rf .skein g",
        ),
      ).toBe("");
      expect(await attacker.write("g", Buffer.from("text"), signal)).toBe(4);
      await attacker.remove("g", signal);
    });

    test("opens again however full staging is", async () => {
      const fill = "mkdir -p .skein/staging/d; cd .skein/staging; seq 2000 | sed s/^/x/ | xargs touch";
      const deep = "cd d; i=0; while [ $((i += 1)) -le 300 ]; do mkdir d && cd d; done";
      await insist(attacker, `${fill}; ${deep}`);
      await beside(house, house.restart());
      await comesBack(attacker);
      await expect.poll(() => output(attacker, "ls .skein/staging")).toBe("");
    });

    test("is usable again after a restart if its user has removed all access to it", async () => {
      await insist(attacker, "chmod 0 .");
      expect((await insist(attacker, "true")).exitCode).not.toBe(0);
      await house.restart();
      await comesBack(attacker);
    });

    test("leads to nothing outside, even if a name is replaced while it is in use", async () => {
      const put = [
        "ln -sfn /etc/passwd s",
        "rm -f s; mkfifo s",
        "rm -f s; echo good > s",
        "ln -sfn /dev/zero s",
      ];
      const more = ["rm -f s; mkdir s; ln -s / s/s", "rm -rf s; ln -s s s", "rm -f s; ln -s .. s", "rm -f s"];
      const attack = new AbortController();
      const swapping = insist(attacker, `(while :; do ${[...put, ...more].join("; ")}; done) 2> /dev/null`, {
        signal: attack.signal,
        timeoutMs: 300_000,
      });
      swapping.catch(() => attack.abort());
      for (let round = 0; round < 20; round++) {
        expect((await beside(house, askAll(attacker, "s"))).join("\n")).not.toContain(SECRET);
      }
      attack.abort();
      await swapping;
      await comesBack(attacker);
    }, 300_000);
  });
