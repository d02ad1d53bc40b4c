import type { Cluster, Redis } from 'ioredis'
import {
  type Attempt,
  attemptFor,
  createDeadlines,
  faultText,
  isServersAnswer,
  noReply,
  persist,
  within,
} from './attempt.js'
import { type Call, evaluate, isUnknownScript, type Link, openLink } from './link.js'
import { type Client, duplicateClient } from './own-client.js'

/** Runs scripts on a connection of the store's own, each within `timeoutMs`. */
export interface Connection {
  readonly link: Link
  /**
   * Repeats a call whose reply was lost, which must have no further effect.
   *
   * @throws NotConfirmed when there was no reply in time, or the error that Redis sent.
   */
  run(call: Call): Promise<unknown>
  /** The nodes that take writes, as they are now. */
  masters(): Promise<readonly Redis[]>
  close(): void
}

export function openConnection(usersClient: Client, timeoutMs: number): Connection {
  const link = openLink(duplicateClient(usersClient, timeoutMs))
  const { client } = link
  // The sockets of a cluster's client cannot be told not to hold the process open.
  const rest = (): void => client.disconnect()
  if (client.isCluster) usersClient.on('end', rest)

  const deadlines = createDeadlines()

  const tryOnce = (call: Call, attempt: Attempt): Promise<unknown> => {
    attempt.mayHaveRun = true
    return within(evaluate(link, call, attempt), attempt)
  }

  const runPatiently = (call: Call, attempt: Attempt): Promise<unknown> =>
    persist(attempt, () => {
      const becomingReady = link.untilReady(attempt)
      if (becomingReady === undefined) return tryOnce(call, attempt)
      return becomingReady.then(() => tryOnce(call, attempt))
    })

  /** The usual way: as few promises and timers as it takes. What fails is tried on patiently. */
  const runAtOnce = (call: Call, attempt: Attempt): Promise<unknown> =>
    new Promise((resolve, reject) => {
      attempt.mayHaveRun = true
      deadlines.add(attempt, () => reject(noReply(attempt)))
      link.evaluateKnown(call).then(
        (reply) => {
          deadlines.remove(attempt)
          resolve(reply)
        },
        (error) => {
          // Who waited has been told already.
          if (!deadlines.remove(attempt)) return
          if (!isServersAnswer(error) || isUnknownScript(error))
            resolve(runPatiently(call, attempt))
          else reject(new Error(faultText(error)))
        },
      )
    })

  return {
    link,
    run(call) {
      const attempt = attemptFor(timeoutMs)
      const isReady = client.status === 'ready'
      return link.hold(isReady ? runAtOnce(call, attempt) : runPatiently(call, attempt))
    },
    masters() {
      const attempt = attemptFor(timeoutMs)
      return link.hold(
        persist(attempt, async () => {
          await link.untilReady(attempt)
          return client.isCluster ? await freshMasters(client as Cluster) : [client as Redis]
        }),
      )
    },
    close() {
      usersClient.off('end', rest)
      link.close()
    },
  }
}

async function freshMasters(cluster: Cluster): Promise<readonly Redis[]> {
  await new Promise<void>((resolve, reject) => {
    cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()))
  })
  return cluster.nodes('master')
}
