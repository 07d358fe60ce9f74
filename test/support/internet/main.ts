// Everything that is beyond an engine's host, in a network namespace of its own, once it knows the address of the resolver:
// answers every connection to port 80 of any of its addresses with "reached", and at the resolver every question for
// a name with 203.0.113.7. Says "here", then "ready", and goes at the end of its input.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/** An A record for every name. */
function answerTo(query: Buffer): Buffer {
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(1, 6);
  header.writeUInt32BE(0, 8);
  const question = query.subarray(12, query.indexOf(0, 12) + 5);
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 7]);
  return Buffer.concat([header, question, record]);
}

console.log("here");
process.stdin.once("end", () => process.exit());
const [resolver] = await once(process.stdin.setEncoding("utf8"), "data");
const names = createSocket("udp4", (query, from) => names.send(answerTo(query), from.port, from.address));
const server = createServer((socket) => socket.on("error", () => {}).end("reached\n"));
await Promise.all([
  once(names.bind(53, resolver.trim()), "listening"),
  once(server.listen(80, "0.0.0.0"), "listening"),
]);
console.log("ready");
