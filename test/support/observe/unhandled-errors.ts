import { onTestFinished } from 'vitest'

/** The rejections and exceptions that nobody handles until the end of the test. */
export function collectUnhandledErrors(): readonly unknown[] {
  const errors: unknown[] = []
  const note = (error: unknown): unknown => errors.push(error)
  process.on('uncaughtException', note).on('unhandledRejection', note)
  onTestFinished(() => void process.off('uncaughtException', note).off('unhandledRejection', note))
  return errors
}
