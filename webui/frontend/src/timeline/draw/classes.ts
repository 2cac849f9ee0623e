/** The classes of events in words: what a legend and a tooltip say of a colour and its second sign. */

export interface EventClass {
  id: string;
  name: string;
  explanation: string;
}

export const EVENT_CLASSES: readonly EventClass[] = [
  { id: "compute", name: "compute", explanation: "kernels of the device; on a rank without one, operators of the CPU" },
  { id: "communication_exposed", name: "communication, exposed", explanation: "collectives with no compute beside them: time that is waited; an edge above" },
  { id: "communication_overlapped", name: "communication, overlapped", explanation: "collectives that compute ran beside; hatched" },
  { id: "memory", name: "memory", explanation: "copies and sets of the device's memory; vertical lines" },
  { id: "data_loading", name: "data loading", explanation: "fetching the next batch, or waiting for it; dots" },
  { id: "host", name: "host", explanation: "the CPU on its way to the device: operators, launches, Python; the letter H, a firm border" },
  { id: "optimizer", name: "optimizer", explanation: "Optimizer.step and zero_grad on the CPU; the letter O" },
  { id: "idle", name: "idle", explanation: "nothing runs; hollow" },
  { id: "unrecorded", name: "not recorded", explanation: "work was launched that is not in the trace" },
];

const NAMES = new Map(EVENT_CLASSES.map(({ id, name }) => [id, name]));

/** The words for a class; its own name where there are none. */
export function className(id: string): string {
  return NAMES.get(id) ?? id;
}
