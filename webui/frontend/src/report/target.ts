/** Kind and name of a target that is a job, as "Job/llama"; labels are none. */
export function readJob(target: string): { kind: string; name: string } | undefined {
  const [, kind, name] = /^([A-Z]\w*)\/([^/=,]+)$/.exec(target) ?? [];
  return kind && name ? { kind, name } : undefined;
}
