import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { GOOD_READ } from '../../example-app/control-room/page/compose/good-calls.js'
import type {
  ActionName,
  Actions,
  CallOrder,
  CallResult,
  RoomState,
} from '../../example-app/control-room/protocol.js'
import { type OpenOptions, useBrowser } from '../support/browser/chromium.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { type StartedRoom, startRoom } from './start-room.js'

/** Long enough to be seen running, short enough to wait for its end. */
const LEASE_SECONDS = 3

export interface OpenPanel {
  readonly page: Page
  readonly panel: Locator
}

/** A room on a Redis of its own, for the tests of a file, and its page in a browser. */
export function useRoom() {
  const browser = useBrowser()
  let redis: RedisServer
  let started: StartedRoom

  beforeAll(async () => {
    redis = await startRedis()
    started = await startRoom({ redisUrl: redis.url, leaseSeconds: LEASE_SECONDS })
  })
  afterAll(async () => {
    await started?.close()
    await redis?.stop()
  })

  const act = <Name extends ActionName>(name: Name, input: Actions[Name][0]) =>
    started.room.act(name, input) as Promise<Actions[Name][1]>

  return {
    redis: (): RedisServer => redis,
    state: (): RoomState => started.room.state(),
    act,
    call: (order: Partial<CallOrder>): Promise<CallResult> =>
      act('call', { ...GOOD_READ, ...order }),
    /** Opens the page in a profile of its own, and looks at one of its panels. */
    async open(panel: string, options: OpenOptions = {}): Promise<OpenPanel> {
      const page = await browser.open(started.address, options)
      await page.locator('.connection-live').waitFor()
      return { page, panel: page.locator(`#${panel}`) }
    },
  }
}

/** A browser complains of an answer that says why something was not done. */
export const NOT_DONE: OpenOptions = { mayComplainOf: /status of 400/ }

/** A browser also complains when the room says that the store does not answer. */
export const STORE_AWAY: OpenOptions = { mayComplainOf: /status of 503/ }

/** The status that the caller got; undefined where there was no answer. */
export const statusOf = ({ answer }: CallResult): number | undefined =>
  'status' in answer ? answer.status : undefined
