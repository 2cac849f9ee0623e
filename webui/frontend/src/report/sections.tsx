// The sections of a report in their order: a new one is a row here, and a component that takes the report and its view.
import type { ComponentType } from "react";
import type { ReportPage } from "@/api/models";
import { CaptureCostSection } from "./CaptureCost";
import { Downloads } from "./Downloads";
import { Findings } from "./Findings";
import { IterationsSection } from "./ranks/Iterations";
import { RanksSection } from "./ranks/Ranks";
import { SamplesSection } from "./ranks/Samples";
import { SpreadSection } from "./ranks/Spread";
import { StagesSection } from "./ranks/Stages";
import { StragglersSection } from "./ranks/Stragglers";
import { TotalsSection } from "./ranks/Totals";
import { Recorded } from "./Recorded";
import type { ReportView } from "./search";
import { CommunicationSection } from "./tables/Communication";
import { KernelsSection } from "./tables/Kernels";
import { LaunchesSection } from "./tables/Launches";

export interface SectionProps {
  report: ReportPage;
  view: ReportView;
}

export interface ReportSection {
  /** Of its `Section`, by which addresses lead to it. */
  id: string;
  /** In the list of contents. */
  name: string;
  /** Left out where it is false, instead of standing there empty. */
  isIn?: (report: ReportPage) => boolean;
  Body: ComponentType<SectionProps>;
}

/** Ranks without a GPU have no device work. */
const onDevices = ({ totals }: ReportPage) => totals.some(({ kind }) => kind === "gpu");

export const SECTIONS: readonly ReportSection[] = [
  { id: "findings", name: "Findings", Body: Findings },
  { id: "time", name: "Time", Body: TotalsSection },
  { id: "ranks", name: "Ranks", Body: RanksSection },
  { id: "stragglers", name: "Stragglers", Body: StragglersSection },
  { id: "iterations", name: "Iterations", Body: IterationsSection },
  { id: "spread", name: "Spread", Body: SpreadSection },
  { id: "stages", name: "Stages", Body: StagesSection },
  { id: "kernels", name: "Kernels", isIn: onDevices, Body: KernelsSection },
  { id: "communication", name: "Communication", Body: CommunicationSection },
  { id: "launches", name: "Launches", isIn: onDevices, Body: LaunchesSection },
  { id: "samples", name: "Samples", Body: SamplesSection },
  { id: "cost", name: "Capture cost", Body: CaptureCostSection },
  { id: "recorded", name: "Recorded", Body: Recorded },
  { id: "downloads", name: "Downloads", Body: Downloads },
];
