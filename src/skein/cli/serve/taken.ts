// A server without a port, for connections that another process accepts.

import { once } from "node:events";
import type { Socket } from "node:net";
import type { HttpServer } from "../../../server/http/server.ts";

/**
 * Returns a function that makes `server` serve a connection as if the server itself had accepted it. Closing the server
 * waits for these connections.
 */
export async function withoutPort(server: HttpServer): Promise<(socket: Socket) => void> {
  const open = new Set<Socket>();
  server.addHook("onClose", async () => {
    for (const socket of open) if (!socket.closed) await once(socket, "close");
  });
  await server.ready();
  // Makes Node track connections, close idle ones, and cut off slow clients.
  server.server.emit("listening");
  return (socket) => {
    // The same setting as for connections that Node's HTTP server accepts.
    socket.allowHalfOpen = true;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    server.server.emit("connection", socket);
  };
}
