// The sections of a report in their order: a new one is a row here, and a component that takes the report and its view.
import type { ComponentType } from "react";
import { ALONE } from "@/api/alone";
import type { ReportPage } from "@/api/models";
import { BesideSection } from "./Beside";
import { CaptureCostSection } from "./CaptureCost";
import { Downloads } from "./Downloads";
import { Findings } from "./Findings";
import { GlossarySection } from "./Glossary";
import { IdleSection } from "./Idle";
import { ModulesSection } from "./modules/Modules";
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
import { MemorySection } from "./tables/Memory";
import { ThroughputSection } from "./Throughput";
import { WhatIfSection } from "./whatif/WhatIf";

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
  { id: "idle", name: "Idle", isIn: ({ totals }) => totals.some((total) => total.idle_ns && total.time_ns.idle > 0), Body: IdleSection },
  { id: "ranks", name: "Ranks", Body: RanksSection },
  { id: "stragglers", name: "Stragglers", Body: StragglersSection },
  { id: "iterations", name: "Iterations", Body: IterationsSection },
  { id: "spread", name: "Spread", Body: SpreadSection },
  { id: "stages", name: "Stages", Body: StagesSection },
  { id: "modules", name: "Modules", Body: ModulesSection },
  { id: "kernels", name: "Kernels", isIn: onDevices, Body: KernelsSection },
  { id: "communication", name: "Communication", Body: CommunicationSection },
  { id: "launches", name: "Launches", isIn: onDevices, Body: LaunchesSection },
  { id: "memory", name: "Memory", isIn: onDevices, Body: MemorySection },
  { id: "throughput", name: "Throughput", isIn: ({ throughput, efficiency, energy }) => throughput.length + efficiency.length + energy.length > 0, Body: ThroughputSection },
  { id: "whatif", name: "What if", Body: WhatIfSection },
  { id: "samples", name: "Samples", Body: SamplesSection },
  { id: "cost", name: "Capture cost", Body: CaptureCostSection },
  { id: "recorded", name: "Recorded", Body: Recorded },
  { id: "downloads", name: "Downloads", Body: ALONE ? BesideSection : Downloads },
  { id: "glossary", name: "Terms", Body: GlossarySection },
];
