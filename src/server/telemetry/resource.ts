// Describes this server to a collector. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME take precedence.

import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";

export const telemetryResource = (version: string): Resource =>
  defaultResource()
    .merge(resourceFromAttributes({ "service.name": "skein", "service.version": version }))
    .merge(detectResources({ detectors: [envDetector] }));
