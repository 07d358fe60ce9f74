// The webhooks of a tenant, for its admins; an operator names the tenant.

import { useState } from "preact/hooks";
import { may } from "../session.ts";
import { t } from "../texts.ts";
import { tenantWebhooks } from "./webhook-methods.ts";
import { Webhooks } from "./webhooks.tsx";

export function TenantWebhooks() {
  const [tenant, setTenant] = useState("");
  const name = tenant.trim() === "" ? undefined : tenant.trim();
  return (
    <div class="sections">
      {may("operator") && (
        <label class="pick">
          {t().admin.tenant}
          <input value={tenant} onChange={(event) => setTenant(event.currentTarget.value)} />
        </label>
      )}
      <Webhooks key={name} methods={tenantWebhooks(name)} />
    </div>
  );
}
