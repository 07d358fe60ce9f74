// Data that belongs to a tenant, for its admins. An operator selects the tenant.

import { type ComponentChildren, Fragment } from "preact";
import { useState } from "preact/hooks";
import { may } from "../session.ts";
import { adminTexts } from "../texts/admin.ts";

/** If no name is entered, uses the admin's own tenant. */
export function OfTenant({ children }: { children: (name: string | undefined) => ComponentChildren }) {
  const [tenant, setTenant] = useState("");
  const name = tenant.trim() === "" ? undefined : tenant.trim();
  return (
    <div class="sections">
      {may("operator") && (
        <label class="pick">
          {adminTexts().tenant}
          <input value={tenant} onChange={(event) => setTenant(event.currentTarget.value)} />
        </label>
      )}
      <Fragment key={name}>{children(name)}</Fragment>
    </div>
  );
}
