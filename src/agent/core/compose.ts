// Composes the layers (the onion) around model calls and tool calls, and attributes each error to the hook that threw it.

import type { DeltaSink, Stream } from "./stream.ts";

type Call<Request, Result> = (request: Request, deltas?: DeltaSink) => Result;
type Layer<Request, Result, Context> = (
  request: Request,
  next: Call<Request, Result>,
  context: Context,
  deltas?: DeltaSink,
) => Result;

/** Wraps `core` in `layers`. The first layer is the outermost. A layer may call `next` several times, or never. */
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
  /** Marks the innermost call. Its errors are not attributed to a hook. */
  core(call: StreamCall<Request, T>): StreamCall<Request, T>;
  /** Marks a layer. An error that the layer itself throws becomes the value that `replace` returns. */
  layer(hook: string, layer: StreamLayer<Request, T, Context>): StreamLayer<Request, T, Context>;
}

/**
 * Separates the errors of hooks from those of the innermost call. Calls `replace` once for each error that a
 * hook throws.
 */
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
 * Returns the stream that `make` creates, and passes errors of `make` and of the stream through `replace`. It
 * patches `next` instead of adding a generator, because every token passes through here.
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
