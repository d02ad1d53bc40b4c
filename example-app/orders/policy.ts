import { readFileSync } from 'node:fs'
import type { ServiceAuthPolicy } from 'express-service-auth'

/** One file for the receiver and for the command `service-auth`, which then judges as the receiver does. */
export const POLICY: ServiceAuthPolicy = JSON.parse(
  readFileSync(new URL('./policy.json', import.meta.url), 'utf8'),
)
