// The onion, for model calls and tool calls alike.

type Layer<Request, Result, Context> = (
  request: Request,
  next: (request: Request) => Result,
  context: Context,
) => Result;

/** `core` wrapped in layers, the first outermost. A layer may call `next` several times, or never. */
export function compose<Request, Result, Context>(
  layers: readonly (Layer<Request, Result, Context> | undefined)[],
  core: (request: Request) => Result,
  context: Context,
): (request: Request) => Result {
  return layers.reduceRight<(request: Request) => Result>(
    (next, layer) => (layer ? (request) => layer(request, next, context) : next),
    core,
  );
}
