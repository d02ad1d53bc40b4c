import { listen } from '../listen.js'
import { openKeyRing } from './key-ring.js'
import { scheduleFor } from './rotation.js'
import { createCoreHandler } from './routes.js'

export interface IdentityCoreOptions {
  /** What `POST /recipe/jwt` and `GET /apiversion` demand in the header `api-key`. */
  readonly apiKey: string
  /** 0, the default, takes a free port. */
  readonly port?: number
  /** How long a dynamic key signs; the core's default is a week. */
  readonly rotationSeconds?: number
  /** Where the keys outlive a restart; without it they live in memory only. */
  readonly keysFile?: string
  /** Milliseconds since the epoch. */
  readonly clock?: () => number
}

export interface IdentityCore {
  /** The address of the core, and the API domain: what its tokens should carry as `iss`. */
  readonly url: string
  /** Makes a dynamic key that signs from now on, and returns its id; the old stay published. */
  rotate(): Promise<string>
  /** Takes a key out of use and out of the published set; tells whether it was there. */
  withdraw(kid: string): Promise<boolean>
  /** Lets the key set (nothing else) answer 503 or close the connection, or serves it again. */
  setDown(down: boolean, how?: 'unavailable' | 'hang-up'): void
  /** How often the key set was asked for, outages included. */
  keySetRequests(): number
  close(): Promise<void>
}

export const WEEK_SECONDS = 604_800

/** Starts a stand-in for the identity core: for development and tests, never for production. */
export async function startIdentityCore(options: IdentityCoreOptions): Promise<IdentityCore> {
  const { apiKey, port = 0, rotationSeconds = WEEK_SECONDS, keysFile, clock = Date.now } = options
  if (apiKey === '') throw new TypeError('apiKey must not be empty')
  const keyRing = await openKeyRing({ schedule: scheduleFor(rotationSeconds), clock, keysFile })
  let keySetAnswer: 'serve' | 'unavailable' | 'hang-up' = 'serve'
  let keySetRequests = 0

  const onKeySetRequest = () => {
    keySetRequests += 1
    return keySetAnswer
  }
  const server = await listen(createCoreHandler({ apiKey, keyRing, clock, onKeySetRequest }), port)
  return {
    url: server.url,
    rotate: keyRing.rotate,
    withdraw: keyRing.withdraw,
    setDown(down, how = 'unavailable') {
      keySetAnswer = down ? how : 'serve'
    },
    keySetRequests: () => keySetRequests,
    close: server.close,
  }
}
