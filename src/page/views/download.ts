// Saving bytes to the user's disk.

import { visible } from "../components.tsx";

/** Longer than a browser takes to begin reading. */
const KEPT_MS = 60_000;

/** The name is shown by the browser and by the system: nothing unseen stays in it. */
export function download(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = visible(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
