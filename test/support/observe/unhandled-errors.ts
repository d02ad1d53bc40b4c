import { onTestFinished } from 'vitest'

/** Collects the unhandled rejections and exceptions until the end of the test. */
export function collectUnhandledErrors(): readonly unknown[] {
  const errors: unknown[] = []
  const note = (error: unknown): unknown => errors.push(error)
  process.on('uncaughtException', note).on('unhandledRejection', note)
  onTestFinished(() => void process.off('uncaughtException', note).off('unhandledRejection', note))
  return errors
}
