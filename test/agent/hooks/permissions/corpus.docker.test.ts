// What the rules let run, held against what a sandbox does with it: hundreds of lines, at night thousands, that all try to run one program.

import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { describeWithEngine, type Engine } from "../../../support/engine.ts";
import { seedOr } from "../../../support/seed.ts";
import { commandLine, type Payload, randomFrom } from "./corpus.ts";
import { type Spec, verdictOn } from "./given.ts";

const seed = seedOr(9);
const LINES = process.env.TESTS === "nightly" ? 15_000 : 500;

/** Each line in a folder of its own, in a shell that is given it as the tool for commands gives it. Prints those that succeed. */
const RUNNER = `
mkdir -p /tmp/runs /tmp/none; cd /tmp/runs
number=0
while IFS= read -r line; do
  number=$((number + 1))
  mkdir $number; cd $number
  printf 'one\\ntwo\\n' > f; : > victim; echo y > y
  timeout -s KILL 5 sh -c "$(printf '%s' "$line" | base64 -d)" < /dev/null > /dev/null 2>&1
  [ -e victim ] || echo $number
  cd ..; rm -rf $number
done`;

/** Those of the lines that did what they were made for, when nothing held them back. */
async function effective(
  engine: Engine,
  image: "debian" | "busybox",
  lines: readonly string[],
): Promise<string[]> {
  const container = await engine.docker.createContainer({
    ...{ Image: await engine.image(image), Cmd: ["sh", "-c", RUNNER], User: "0", NetworkDisabled: true },
    ...{ OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true },
  });
  try {
    const stream = await container.attach({
      stream: true,
      hijack: true,
      stdin: true,
      stdout: true,
      stderr: true,
    });
    const output = new Readable({ read() {} });
    container.modem.demuxStream(
      stream,
      { write: (chunk: Buffer) => output.push(chunk) } as never,
      process.stderr,
    );
    stream.on("end", () => output.push(null));
    await container.start();
    stream.end(`${lines.map((line) => Buffer.from(line).toString("base64")).join("\n")}\n`);
    const numbers = (await buffer(output)).toString().split("\n").filter(Boolean).map(Number);
    return numbers.map((number) => lines[number - 1] ?? "");
  } finally {
    await container.remove({ force: true });
  }
}

function linesOf(payload: Payload): string[] {
  const random = randomFrom(seed);
  return [...new Set(Array.from({ length: LINES }, () => commandLine(payload, random)))];
}

/** One container runs at most so many lines, one after the other. */
const PART = 540;

/** Parts of equal size: of a few lines too many or too few may be effective. */
function parts(lines: readonly string[]): string[][] {
  const count = Math.ceil(lines.length / PART);
  const size = Math.ceil(lines.length / count);
  return Array.from({ length: count }, (_, part) => lines.slice(part * size, (part + 1) * size));
}

/** Minimum fraction of the lines that must do what they are made for. */
const EFFECTIVE = { debian: 0.5, busybox: 0.2 } as const;

describeWithEngine(`of ${LINES} lines (TEST_SEED=${seed})`, (engine) => {
  const cases = (["debian", "busybox"] as const).flatMap((image) =>
    parts(linesOf({ program: "rm", argument: "victim" })).map((lines, part) => ({ image, part, lines })),
  );

  test.each(cases)(
    "no line that a rule allows removes what another rule denies, in $image, part $part",
    async ({ image, lines }) => {
      const removing = await effective(engine, image, lines);
      expect(removing.length / lines.length).toBeGreaterThan(EFFECTIVE[image]);
      const rules: Spec[][] = [
        [{ deny: "execute", command_prefix: ["rm"] }],
        [{ deny: "execute", regex: "\\brm\\b" }],
      ];
      for (const each of rules)
        expect(removing.filter((line) => verdictOn(line, each, "bypass").decision !== "deny")).toEqual([]);
    },
  );

  // `unlink` stands for any program that no rule names.
  const others = parts(linesOf({ program: "unlink", argument: "victim" })).map((lines, part) => ({
    part,
    lines,
  }));

  test.each(others)(
    "no line that rules allow runs a program that they do not name, part $part",
    async ({ lines }) => {
      const intruding = await effective(engine, "debian", lines);
      expect(intruding.length / lines.length).toBeGreaterThan(EFFECTIVE.debian);
      const named =
        "ls cat echo printf tar find sed awk sort split python3 perl cp ln chmod mkdir cd tee tr base64 seq test cut".split(
          " ",
        );
      const rules: Spec[] = [{ allow: "execute", command_prefix: named }];
      expect(intruding.filter((line) => verdictOn(line, rules).decision === "allow")).toEqual([]);
    },
  );
});
