// Finds which layer of an onion threw an error: the innermost call, whose errors hooks pass on, or a hook itself.

import type { Stream } from "./stream.ts";

type Call<Request, T> = (request: Request) => Stream<T>;
type Layer<Request, T, Context> = (request: Request, next: Call<Request, T>, context: Context) => Stream<T>;

interface Blaming<Request, T, Context> {
  /** The innermost call. No hook is blamed for its errors. */
  core(call: Call<Request, T>): Call<Request, T>;
  /** An error that the layer itself throws becomes what `blame` returns. */
  layer(hook: string, layer: Layer<Request, T, Context>): Layer<Request, T, Context>;
}

/** For one onion. `blame` is called once for each error that a hook itself throws. */
export function blaming<Request, T, Context>(
  blame: (hook: string, error: unknown, request: Request) => unknown,
): Blaming<Request, T, Context> {
  const known = new WeakSet<object>();
  const remember = (error: unknown): object => {
    const kept = isObject(error) ? error : new Error(String(error));
    known.add(kept);
    return kept;
  };
  return {
    core: (call) => (request) => watched(() => call(request), remember),
    layer: (hook, layer) => (request, next, context) =>
      watched(
        () => layer(request, next, context),
        (error) => (isObject(error) && known.has(error) ? error : remember(blame(hook, error, request))),
      ),
  };
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * The stream that `make` returns; what is thrown by either is replaced. Not by a generator around it, as every token
 * passes here.
 */
function watched<T>(make: () => Stream<T>, replace: (error: unknown) => unknown): Stream<T> {
  const fail = (error: unknown): never => {
    throw replace(error);
  };
  try {
    const stream = make();
    const next = stream.next.bind(stream);
    stream.next = () => next().then(undefined, fail);
    return stream;
  } catch (error) {
    return fail(error);
  }
}
