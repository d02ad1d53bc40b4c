import { StartError } from './start-error.js'

/**
 * No timer of the package keeps a process alive, so a start that waits for nothing else (a second
 * try for the key set, say) would end without a word.
 */
const HOLD_OPEN_MS = 1000

interface Service {
  /** Called when signals are heard: from then on they close the service. */
  begin?(): void
  close(): Promise<void>
}

/**
 * Runs the command line of a service. What the user can put right is one line on standard error
 * and exit code 1; only a programming error shows its stack.
 */
export async function launch(
  name: string,
  start: () => Promise<Service | undefined>,
): Promise<void> {
  const holdOpen = setInterval(() => undefined, HOLD_OPEN_MS)
  try {
    const service = await start()
    if (service) closeOnSignal(service)
    service?.begin?.()
  } catch (error) {
    complain(name, error)
    process.exit(1)
  } finally {
    clearInterval(holdOpen)
  }
}

/** Says in one line what went wrong at the start. */
function complain(name: string, error: unknown): void {
  const isUsersToFix = error instanceof StartError
  console.error(isUsersToFix ? `${name}: ${error.message.replace(/\s+/g, ' ')}` : error)
}

function closeOnSignal(service: Service): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      service.close().then(
        () => process.exit(0),
        () => process.exit(1),
      )
    })
  }
}
