import type { LiveDenylist, Store } from 'express-service-auth'
import { type Callers, openCallers } from '../../example-app/control-room/calls/callers.js'
import { type Catalogue, openCatalogue } from '../../example-app/control-room/calls/catalogue.js'
import { createEventLog } from '../../example-app/control-room/metrics/event-log.js'
import type { ReceiverReport } from '../../example-app/control-room/ports.js'
import { selfSigned } from '../../example-app/control-room/receivers/self-signed.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { type ReceiversHere, startReceiversHere } from './receivers-here.js'

export const API_KEY = 'the-key-of-the-control-room'

/** Of callers whose calls go without TLS. */
const CERTIFICATE = { ...selfSigned('billing'), path: '/none' }

export interface RoomHere {
  readonly core: IdentityCore
  readonly receivers: ReceiversHere
  readonly catalogue: Catalogue
  readonly callers: Callers
  close(): Promise<void>
}

interface Options {
  readonly denylist?: LiveDenylist
  readonly wrapStore?: (store: Store) => Store
  readonly answerLimitMs?: number
  readonly onReport?: (report: ReceiverReport) => void
}

/** The core, the catalogue, two receivers in this process and who calls them. */
export async function openRoomHere(options: Options = {}): Promise<RoomHere> {
  const { answerLimitMs, onReport, ...others } = options
  const core = await startIdentityCore({ apiKey: API_KEY })
  const catalogue = await openCatalogue({ core, openIssuer: createTestIssuer })
  const log = createEventLog()
  let callers: Callers | undefined
  const receivers = await startReceiversHere({
    issuer: core.issuer,
    ...others,
    onReport(report) {
      onReport?.(report)
      callers?.receive(log.add(report.events), report.requests)
    },
  })
  const mint = { coreUrl: core.url, issuer: core.issuer, apiKey: API_KEY, certificate: CERTIFICATE }
  callers = openCallers({ mint, receivers, catalogue, ...(answerLimitMs && { answerLimitMs }) })
  return {
    core,
    receivers,
    catalogue,
    callers,
    async close() {
      log.close()
      await receivers.close()
      await catalogue.close()
      await core.close()
    },
  }
}
