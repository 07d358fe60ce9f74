// A picture in a message: small, or large in a dialog.

import { useEffect, useState } from "preact/hooks";
import type { Part } from "../../client/client.ts";
import { blobOf } from "../../client/client.ts";
import { Dialog } from "../components.tsx";
import { t } from "../texts.ts";

export function Picture({ part, name }: { part: Exclude<Part, { type: "text" }>; name: string }) {
  const [address, setAddress] = useState<string>();
  const [isLarge, setLarge] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(blobOf(part));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [part]);
  if (!address) return null;
  const label = t().pictures.enlarge(name);
  return (
    <>
      <button type="button" class="picture" aria-label={label} title={label} onClick={() => setLarge(true)}>
        <img src={address} alt="" />
      </button>
      {isLarge && (
        <Dialog title={name} class="picture-dialog" onClose={() => setLarge(false)}>
          <img src={address} alt={name} />
        </Dialog>
      )}
    </>
  );
}
