// A server without a port: it serves the connections that another process accepts.

import { once } from "node:events";
import type { Socket } from "node:net";
import type { HttpServer } from "../../../server/http/server.ts";

/** Resolves with a function that makes `server` serve a connection, as if it had accepted it. Closing the server waits for them. */
export async function withoutPort(server: HttpServer): Promise<(socket: Socket) => void> {
  const open = new Set<Socket>();
  server.addHook("onClose", async () => {
    for (const socket of open) if (!socket.closed) await once(socket, "close");
  });
  await server.ready();
  // From now on Node keeps the list of connections, closes idle ones and cuts off clients that are slow to send.
  server.server.emit("listening");
  return (socket) => {
    // As with connections that Node's HTTP server accepts.
    socket.allowHalfOpen = true;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    server.server.emit("connection", socket);
  };
}
