import { StartError } from './start-error.js'

/**
 * Keeps the process alive during the start. The timers of the package do not, so a start that waits
 * for nothing else (a retry for the key set, for example) would end silently.
 */
const HOLD_OPEN_MS = 1000

interface Service {
  close(): Promise<void>
}

/**
 * Runs the command line of a service. An error that the user can fix is one line on standard error
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
  } catch (error) {
    complain(name, error)
    process.exit(1)
  } finally {
    clearInterval(holdOpen)
  }
}

/** Reports in one line why the start failed. */
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
