import { median } from "../stats.ts";
import type { ImageName } from "./engine.ts";
import { fasterOf, pairs, timed } from "./pairs.ts";
import type { Scenario, Ways } from "./stage.ts";
import { middle, type Row } from "./table.ts";
import type { Way } from "./ways.ts";

const FILES = 1000;
const MATCHES = 10;
const MIB = 1024 ** 2;
const UPLOAD_MIB = 64;
const CHUNK = Buffer.alloc(64 * 1024, "abcdefg\n");
const ROUNDS = 2;

/** Creates a thousand files of about 1 KiB. Every hundredth contains the word. */
const MAKE_TREE = `mkdir tree && cd tree && n=0 && while [ $n -lt ${FILES} ]; do n=$((n+1))
  { printf '%01000d\\n' $n; [ $((n % ${FILES / MATCHES})) != 0 ] || echo needle; } > file-$n.txt; done`;

export const bulk = (image: ImageName): Scenario => ({
  name: `${image}: much at once`,
  async *run(stage) {
    const ways = await stage.sandbox(image);
    if ((await ways.skein.run(MAKE_TREE)) !== 0) throw new Error("The files to search cannot be created.");
    yield await compare(`grep over ${FILES.toLocaleString("en")} files, ms`, ways, (way) =>
      timed(() => way.grep("needle", "tree"), MATCHES),
    );
    yield await throughput("upload", ways, (way) => way.write("upload", chunks()));
    yield await throughput("download", ways, (way) => way.read("upload"));
  },
});

async function compare(
  figure: string,
  { plain, skein }: Ways,
  measure: (way: Way) => Promise<number>,
): Promise<Row> {
  const measured = await pairs(
    ROUNDS,
    () => measure(plain),
    () => measure(skein),
  );
  return {
    figure,
    plain: middle(measured.map((pair) => pair.plain)),
    skein: middle(measured.map((pair) => pair.skein)),
    faster: fasterOf(measured, (ms) => ms),
  };
}

async function throughput(
  what: string,
  { plain, skein }: Ways,
  work: (way: Way) => Promise<number>,
): Promise<Row> {
  const measure = (way: Way) => timed(() => work(way), UPLOAD_MIB * MIB);
  const measured = await pairs(
    ROUNDS,
    () => measure(plain),
    () => measure(skein),
  );
  const cell = (way: keyof Ways) => middle([UPLOAD_MIB / (median(measured.map((pair) => pair[way])) / 1000)]);
  return {
    figure: `${what} of ${UPLOAD_MIB} MiB, MiB a second`,
    ...{ plain: cell("plain"), skein: cell("skein") },
    faster: fasterOf(measured, (ms) => ms),
  };
}

async function* chunks() {
  for (let sent = 0; sent < UPLOAD_MIB * MIB; sent += CHUNK.length) yield CHUNK;
}
