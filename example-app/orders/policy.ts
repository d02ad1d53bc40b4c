import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServiceAuthPolicy } from 'express-service-auth'

const FILE = new URL('./policy.json', import.meta.url)

/** As a person names it on a command line. */
export const POLICY_PATH = relative(process.cwd(), fileURLToPath(FILE))

/** One file for the receiver and for `service-auth --policy`, which so judges as the receiver does. */
export const POLICY: ServiceAuthPolicy = JSON.parse(readFileSync(FILE, 'utf8'))
