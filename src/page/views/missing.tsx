// The view for a URL that the page does not have.

import { Empty } from "../components.tsx";
import { hashOf } from "../routes.ts";
import { t } from "../texts.ts";
import { PageView } from "./page-view.tsx";

export const Missing = () => (
  <PageView title={t().door.noSuchPage}>
    <Empty>
      {t().door.noSuchPageAbout} <a href={hashOf({ view: "new" })}>{t().door.toStart}</a>
    </Empty>
  </PageView>
);
