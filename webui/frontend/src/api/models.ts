// The service's answers by name; the types themselves are made of openapi.json.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type FleetPage = Schemas["FleetPage"];
export type Workload = Schemas["Workload"];
export type Point = Schemas["Point"];
export type Capture = Schemas["Capture"];
export type Figures = Schemas["Figures"];
export type FacetValue = Schemas["FacetValue"];
export type WorkloadPage = Schemas["WorkloadPage"];
export type DaySeries = Schemas["DaySeries"];
export type TelemetryDay = Schemas["TelemetryDay"];
export type JobOfDay = Schemas["JobOfDay"];
export type JobPage = Schemas["JobPage"];
export type LossPage = Schemas["LossPage"];
export type LossRow = Schemas["LossRow"];
export type Policy = Schemas["Policy"];
export type PolicyAction = Schemas["PolicyAction"];
export type PolicyDetail = Schemas["PolicyDetail"];
export type PolicyPage = Schemas["PolicyPage"];
export type Whoami = Schemas["Whoami"];
export type SignedOut = Schemas["SignedOut"];
export type Request = Schemas["Request"];
export type RequestPage = Schemas["RequestPage"];
export type RequestDetail = Schemas["RequestDetail"];
export type StacksPage = Schemas["StacksPage"];
export type StacksLook = Schemas["StacksLook"];
export type RankGroup = Schemas["RankGroup"];
export type StackFrame = Schemas["StackFrame"];
export type LedgerChange = Schemas["LedgerChange"];
export type LedgerColumns = Schemas["LedgerColumns"];
export type StageTimes = Schemas["StageTimes"];
export type CaptureCheck = Schemas["CaptureCheck"];
export type CaptureAnswer = Schemas["CaptureAnswer"];
/** The files of a report with its slice `overview`: what all of its page has at hand. */
export type ReportPage = Schemas["ReportFiles"] & Schemas["Overview"];
export type Finding = Schemas["Finding"];
export type KindTotal = Schemas["KindTotal"];
export type PlaceInCode = Schemas["PlaceInCode"];
export type ModuleTree = Schemas["ModuleTree"];
export type ModuleNode = Schemas["ModuleNode"];
export type Straggler = Schemas["Straggler"];
export type CaptureCost = Schemas["CaptureCost"];
export type RankSlice = Schemas["RankSlice"];
export type StragglerSlice = Schemas["StragglerSlice"];
export type IterationSlice = Schemas["IterationSlice"];
export type IterationSection = Schemas["Heterogeneity"];
export type Box = Schemas["Box"];
export type KernelSlice = Schemas["KernelSlice"];
export type KernelRow = Schemas["KernelRow"];
export type RankKernelSlice = Schemas["RankKernelSlice"];
export type KernelSpreadSlice = Schemas["KernelSpreadSlice"];
export type KernelPart = Schemas["KernelPart"];
export type KernelSpread = Schemas["KernelSpread"];
export type KernelStatistics = Schemas["KernelStatistics"];
export type CommunicationRow = Schemas["CommunicationStatistics"];
export type LaunchSlice = Schemas["LaunchSlice"];
export type RankLaunches = Schemas["RankLaunches"];
export type OperatorLaunches = Schemas["OperatorLaunches"];
export type WhatIfSlice = Schemas["WhatIfSlice"];
export type Prediction = Schemas["Prediction"];
export type PredictedValue = Schemas["PredictedValue"];
export type SampleSlice = Schemas["SampleSlice"];
export type SampleSeries = Schemas["SampleSeries"];

/** The slices of a report by name. */
export interface Slices {
  overview: Schemas["Overview"];
  idle: Schemas["IdleSlice"];
  ranks: RankSlice;
  stragglers: StragglerSlice;
  iterations: IterationSlice;
  stages: Schemas["StageSlice"];
  kernels: KernelSlice;
  rank_kernels: RankKernelSlice;
  kernel_spread: KernelSpreadSlice;
  communication: Schemas["CommunicationSlice"];
  launches: LaunchSlice;
  memory: Schemas["MemorySlice"];
  samples: SampleSlice;
  modules: Schemas["ModuleSlice"];
  whatif: WhatIfSlice;
}
export type Diff = Schemas["Diff"];
export type OpenedPage = Schemas["OpenedPage"];
export type Opened = Schemas["Opened"];
