// How deep a value of JSON is nested.

/** Whether lists and maps stand in each other more than `most` deep. However deep it is, this does not call itself. */
export function isNestedDeeper(value: unknown, most: number): boolean {
  let level = [value].filter(isNest);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > most) return true;
    level = level.flatMap((nest) => Object.values(nest).filter(isNest));
  }
  return false;
}

const isNest = (value: unknown): value is object => typeof value === "object" && value !== null;
