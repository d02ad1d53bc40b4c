import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { POLICY, POLICY_PATH } from '../orders/policy.js'
import type { Stage } from './stage.js'

/** What an operator can do here, one command a line; `token` is the command of the curl lines. */
export async function writeOperatorLines(stage: Stage, directory: string): Promise<string[]> {
  const policy = await policyFile(stage.core.issuer, directory)
  return [
    'npx service-auth check-store',
    `token | npx service-auth doctor --policy ${policy} --token-stdin`,
    `npx service-auth deny caller billing --policy ${policy} --for 15m --reason 'a try'`,
    'npx service-auth denylist',
    `npx service-auth allow caller billing --policy ${policy} --reason 'tried'`,
    `curl -s ${stage.ordersUrl}/readyz`,
    'npx service-auth settle RECORD   # the record of a write of glass, from the log',
  ]
}

/** The receiver's own file, or, where the issuer is another one, a copy that says so. */
async function policyFile(issuer: string, directory: string): Promise<string> {
  if (issuer === POLICY.issuer) return POLICY_PATH
  const path = join(directory, 'policy.json')
  await writeFile(path, JSON.stringify({ ...POLICY, issuer }, null, 2))
  return path
}
