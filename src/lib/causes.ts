// Iterates over an error and its causes.

/** The maximum number of causes, because errors may cause each other in a cycle. */
const MAX_DEPTH = 8;

/** Yields the error and its causes, outermost first. Ends at the first cause that is not an `Error`. */
export function* causesOf(error: unknown): Generator<Error> {
  let each = error;
  for (let depth = 0; depth < MAX_DEPTH && each instanceof Error; depth++) {
    yield each;
    each = each.cause;
  }
}
