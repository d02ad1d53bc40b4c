import { apiKeyFrom, portOf, textFrom } from '../environment.js'
import { type MigrationStage, setMigrationStage } from './migration-stage.js'
import { migrationSteps } from './migration-steps.js'
import { createPrinter, type Printer } from './printer.js'

/** Shows how accounts move into the core; returns whether all went as expected. */
export async function playMigrationStory(): Promise<{
  stage: MigrationStage
  isAsExpected: boolean
}> {
  const printer = createPrinter()
  printer.heading('express-service-auth: a migration of six accounts')
  const stage = await setMigrationStage({
    apiKey: apiKeyFrom('IDENTITY_CORE_API_KEY'),
    port: portOf('identityCore'),
    database: textFrom('IDENTITY_CORE_DATABASE'),
  })
  printer.line(`identity-core  ${stage.core.url}   takes users in`)
  printer.line(`source         ${stage.folder}/users.ndjson`)
  printer.line(`endpoint       ${stage.endpointUrl}   for those who sign up meanwhile`)
  printer.line()
  const isAsExpected = await playAll(stage, printer)
  return { stage, isAsExpected }
}

async function playAll(stage: MigrationStage, printer: Printer): Promise<boolean> {
  const steps = migrationSteps(stage)
  const width = Math.max(...steps.map(({ title }) => title.length))
  let asExpected = 0
  for (const { title, expected, play } of steps) {
    const happened = await play().catch((error: unknown) => `failed: ${error}`)
    const isAsExpected = happened === expected
    const verdict = isAsExpected ? printer.paint('green', 'ok') : printer.paint('red', 'NO')
    printer.line(`${verdict}  ${title.padEnd(width)}  ${printer.paint('dim', happened)}`)
    if (isAsExpected) asExpected += 1
    else printer.line(printer.paint('red', `    NOT AS EXPECTED: expected ${expected}`))
  }
  printer.line()
  printer.heading(`${asExpected} of ${steps.length} steps went as expected`)
  return asExpected === steps.length
}
