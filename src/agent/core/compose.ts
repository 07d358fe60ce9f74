// The onion around model calls and tool calls, and which hook an error came from.

import type { DeltaSink, Stream } from "./stream.ts";

type Call<Request, Result> = (request: Request, deltas?: DeltaSink) => Result;
type Layer<Request, Result, Context> = (
  request: Request,
  next: Call<Request, Result>,
  context: Context,
  deltas?: DeltaSink,
) => Result;

/** `core` wrapped in layers, the first outermost. A layer may call `next` several times, or never. */
export function compose<Request, Result, Context>(
  layers: readonly (Layer<Request, Result, Context> | undefined)[],
  core: Call<Request, Result>,
  context: Context,
): Call<Request, Result> {
  return layers.reduceRight<Call<Request, Result>>(
    (next, layer) => (layer ? (request, deltas) => layer(request, next, context, deltas) : next),
    core,
  );
}

type StreamCall<Request, T> = Call<Request, Stream<T>>;
type StreamLayer<Request, T, Context> = Layer<Request, Stream<T>, Context>;

interface Attribution<Request, T, Context> {
  /** The innermost call. Its errors are attributed to no hook. */
  core(call: StreamCall<Request, T>): StreamCall<Request, T>;
  /** An error that the layer itself throws is replaced by what `replace` returns. */
  layer(hook: string, layer: StreamLayer<Request, T, Context>): StreamLayer<Request, T, Context>;
}

/** Separates errors of hooks from those of the innermost call. `replace` is called once for each error that a hook throws. */
export function attributeErrors<Request, T, Context>(
  replace: (hook: string, error: unknown, request: Request) => unknown,
): Attribution<Request, T, Context> {
  const known = new WeakSet<object>();
  const remember = (error: unknown): object => {
    const kept = isObject(error) ? error : new Error(String(error));
    known.add(kept);
    return kept;
  };
  return {
    core: (call) => (request, deltas) => watched(() => call(request, deltas), remember),
    layer: (hook, layer) => (request, next, context, deltas) =>
      watched(
        () => layer(request, next, context, deltas),
        (error) => (isObject(error) && known.has(error) ? error : remember(replace(hook, error, request))),
      ),
  };
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * The stream that `make` returns, with the errors of both replaced. Patches `next` instead of wrapping the stream in a
 * generator, because every token passes here.
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
