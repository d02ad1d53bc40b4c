import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { IdentityCore } from '../identity-core/identity-core.js'
import { removeTemporaryFolder, temporaryFolder } from '../temporary-folder.js'
import { actionsOf } from './actions.js'
import { openBackgroundLoad } from './calls/background-load.js'
import { type Callers, openCallers } from './calls/callers.js'
import { type CatalogueOptions, openCatalogue } from './calls/catalogue.js'
import { openFeed } from './feed.js'
import { openCoreKeys } from './keys/core-keys.js'
import type { Room } from './ports.js'
import type { CatalogueMessage, RoomState } from './protocol.js'
import { openReceivers, type ReceiversOptions } from './receivers/open-receivers.js'
import { selfSigned } from './receivers/self-signed.js'
import { openTour } from './tour/tour.js'

export interface RoomOptions
  extends Pick<ReceiversOptions, 'apiKey' | 'redisUrl' | 'leaseSeconds' | 'programs'>,
    Pick<CatalogueOptions, 'openIssuer'> {
  /** Its keys and its key set are the visitor's to change. */
  readonly core: IdentityCore
  /** As `program` of `openTour`. */
  readonly tourProgram?: string
}

/**
 * Opens a control room: two receivers, each a process, and what calls, watches and breaks them.
 * @throws {StartError} when the store cannot serve
 * @throws {ActionError} when a receiver cannot
 */
export async function openRoom({ core, openIssuer, ...options }: RoomOptions): Promise<Room> {
  const startedAt = Date.now()
  const { url: coreUrl, issuer } = core
  const folder = await temporaryFolder('express-service-auth-room-')
  const certificate = { ...selfSigned('billing'), path: join(folder, 'billing.pem') }
  await writeFile(certificate.path, certificate.cert + certificate.key, { mode: 0o600 })
  const mint = { coreUrl, issuer, apiKey: options.apiKey, certificate }
  const feed = openFeed(stateOfNow)
  let callers: Callers | undefined
  // Before the receivers fetch the key set, so that its keys are in it.
  const catalogue = await openCatalogue({ core, ...(openIssuer && { openIssuer }) })
  const receivers = await openReceivers({
    ...options,
    coreUrl,
    issuer,
    onReport(report) {
      const events = feed.receive(report)
      callers?.receive(events, report.requests)
    },
    onChange: feed.changed,
  }).catch(async (error: unknown) => {
    feed.close()
    await catalogue.close()
    await removeTemporaryFolder(folder)
    throw error
  })
  callers = openCallers({ mint, receivers, catalogue })
  const keys = openCoreKeys({ core, catalogueKids: catalogue.kids })
  const load = openBackgroundLoad({ mint, receivers })
  const tour = openTour({ program: options.tourProgram, onChange: feed.changed })
  const act = actionsOf({ receivers, callers, keys, load, tour })

  function stateOfNow(): RoomState {
    return {
      now: Date.now(),
      startedAt,
      core: keys.state(),
      store: { name: receivers.storeName, isShared: true, ...receivers.store.health() },
      receivers: receivers.states(),
      orders: receivers.orders(),
      writes: receivers.writes(),
      denied: receivers.denied(),
      totals: feed.totals(),
      backgroundLoad: load.rate(),
      tour: tour.steps(),
    }
  }

  return {
    state: stateOfNow,
    act: (name, input) => act(name, input).finally(feed.changed),
    subscribe(send) {
      // Not in the state, which is sent again and again: it is large, and stays as it is.
      send('catalogue', { hostileTokens: catalogue.cases } satisfies CatalogueMessage)
      return feed.subscribe(send)
    },
    async close() {
      await load.close()
      await tour.close()
      await receivers.close()
      feed.close()
      await catalogue.close()
      await removeTemporaryFolder(folder)
    },
  }
}
