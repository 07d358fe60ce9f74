// An error and what caused it.

/** Errors may cause each other in circles. */
const MAX_DEPTH = 8;

/** The error and its causes, outermost first, as far as they are errors. */
export function* causesOf(error: unknown): Generator<Error> {
  let each = error;
  for (let depth = 0; depth < MAX_DEPTH && each instanceof Error; depth++) {
    yield each;
    each = each.cause;
  }
}
