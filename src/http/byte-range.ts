// The Range header (RFC 9110, §14): one range of bytes, or none.

import { AppError } from "../core/errors.ts";

/**
 * The bytes that a client asks for, out of `size`. Undefined for no range, and for what we need not honour
 * (several ranges, other units). Throws `range_not_satisfiable`.
 */
export function byteRange(
  header: string | undefined,
  size: number,
): { offset: number; length: number } | undefined {
  const parts = /^bytes=(?<first>\d{0,15})-(?<last>\d{0,15})$/.exec(header ?? "")?.groups;
  if (!parts || (parts.first === "" && parts.last === "")) return undefined;
  const suffix = parts.first === "";
  const offset = suffix ? Math.max(0, size - Number(parts.last)) : Number(parts.first);
  const end = suffix || parts.last === "" ? size - 1 : Math.min(Number(parts.last), size - 1);
  if (offset > end || offset >= size)
    throw new AppError("range_not_satisfiable", `The file has ${size} bytes; \`${header}\` lies outside.`);
  return { offset, length: end - offset + 1 };
}
