/** A step of the story, as the tour shows it: its title and request are those of the story. */
export interface ScriptedStep {
  readonly title: string
  readonly request: string
  /** What there is to be seen, in one sentence. */
  readonly about: string
  /** Why it is not played twice; absent where it may be. */
  readonly notAgain?: string
  /** Milliseconds that lie between two times, and why. */
  readonly rest?: { readonly forMs: number; readonly because: string }
  /** An earlier step whose token it sends once more, and for how long that is good. */
  readonly needs?: { readonly title: string; readonly withinMs: number }
  /** The core's key set is down before it begins. */
  readonly isCoreDown?: boolean
}

/** Tokens live for five minutes. */
const TOKEN_IS_GOOD_FOR_MS = 240_000

const READ = 'billing: GET /orders/o-1'
const WRITE = 'billing: POST /orders, k1'
const TRACKING = 'GET /orders/o-1/tracking'

/** The story of `npm start -- --once` in memory, in its order; playing the first step again begins again. */
export const SCRIPT: readonly ScriptedStep[] = [
  {
    title: 'accepted read',
    request: READ,
    about: 'Billing is an approved caller and its token holds the permission, so it may read.',
  },
  {
    title: 'accepted write',
    request: WRITE,
    about: 'A write brings an idempotency key: it runs, and its answer is kept under the key.',
    notAgain:
      'Its key is used up, so it would be the retry of the next step; the first step begins again',
  },
  {
    title: 'identical retry, from store',
    request: WRITE,
    about: 'The same request with the same key gets the kept answer, and no second order is made.',
  },
  {
    title: 'key reused with another body',
    request: WRITE,
    about: 'The same key with another body is a mistake of the caller, so nothing runs.',
  },
  {
    title: 'replayed token',
    request: 'billing: POST /orders, k2',
    about: 'A write takes each token once: whoever has copied one can do nothing with it.',
    needs: { title: 'key reused with another body', withinMs: TOKEN_IS_GOOD_FOR_MS },
  },
  {
    title: 'answer lost, billing retries',
    request: 'billing: PUT /invoices/…',
    about: 'The answer gets lost after the work is done, billing retries, and there is one order.',
  },
  {
    title: 'endpoint for both, a service',
    request: `billing: ${TRACKING}`,
    about: 'This endpoint takes services and users; here a service asks with its token.',
  },
  {
    title: 'endpoint for both, a user',
    request: `alice: ${TRACKING}`,
    about: 'At the same endpoint a user asks with the cookie of a session.',
  },
  {
    title: 'endpoint for both, two at once',
    request: `both: ${TRACKING}`,
    about: 'A request with both credentials cannot be two callers, so it is refused.',
  },
  {
    title: 'missing permission',
    request: 'reporting: POST /orders',
    about: 'The token claims a permission that the policy does not let reporting have.',
  },
  {
    title: 'unapproved caller',
    request: 'shipping: GET /orders/o-1',
    about: 'The token is genuine, and the policy does not know its caller.',
  },
  {
    title: 'tampered token',
    request: 'reporting: GET /orders/o-1',
    about: 'Somebody has changed the caller in a token, and the signature gives it away.',
  },
  {
    title: 'wrong audience',
    request: READ,
    about: 'A genuine token for another service opens nothing here.',
  },
  {
    title: 'rotation in mid-flight',
    request: READ,
    about:
      'The core signs with a new key, and the receiver fetches the key set once to learn of it.',
    rest: {
      forMs: 5000,
      because: 'A receiver fetches for unknown keys twice in 10 seconds at most',
    },
  },
  {
    title: 'old key after the rotation',
    request: READ,
    about: 'A token that the old key has signed is still good, for that key is still published.',
    needs: { title: 'rotation in mid-flight', withinMs: TOKEN_IS_GOOD_FOR_MS },
  },
  {
    title: 'key set down',
    request: READ,
    about: 'The core no longer gives its key set, and the receiver goes on with what it has.',
  },
  {
    title: 'key set down, fresh receiver',
    request: READ,
    about: 'A receiver that starts now cannot know any key: it says so, and refuses nobody.',
    isCoreDown: true,
  },
]
