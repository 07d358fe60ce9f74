// Saves bytes as a file on the user's computer.

import { visible } from "../components.tsx";

/** The time until the object URL is revoked. This is longer than a browser takes to start reading. */
const KEPT_MS = 60_000;

/** The browser and the system show the name, so invisible characters are replaced. */
export function download(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = visible(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
