import { runBoth, temporaryFile } from '../kit.js'

export interface Asked {
  readonly options?: readonly string[]
  readonly stdin?: string
}

export type Printed = { keySet: Record<string, unknown>; [member: string]: unknown }

/** Runs the command on a file of this policy, or of several. */
export async function diagnose(policy: object, { options = [], stdin = '' }: Asked = {}) {
  const path = await temporaryFile(JSON.stringify(policy), 0o644)
  const ran = await runBoth(['doctor', '--policy', path, ...options], { stdin })
  return { ...ran, object: ran.object as Printed }
}
