// A proxy on a Unix socket, for TLS only: see ../registry.ts. Where this machine needs a proxy itself, everything goes there.

import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Socket } from "node:net";

const [socket = ""] = process.argv.slice(2);
const next = process.env.HTTPS_PROXY || process.env.https_proxy;

function join(client: Socket, upstream: Socket): void {
  client.pipe(upstream).pipe(client);
  // Either side may close its end.
  client.on("error", () => upstream.destroy());
  upstream.on("error", () => client.destroy());
}

const ready = () => console.log("ready");
if (next) {
  const { hostname, port } = new URL(next);
  createServer((client) => join(client, connect(Number(port || 80), hostname))).listen(socket, ready);
} else {
  createHttpServer()
    .on("connect", ({ url }, client: Socket) => {
      const { hostname, port } = new URL(`https://${url}`);
      const upstream = connect(Number(port || 443), hostname, () => {
        client.write("HTTP/1.1 200 OK\r\n\r\n");
        join(client, upstream);
      });
      upstream.on("error", () => client.destroy());
    })
    .listen(socket, ready);
}
