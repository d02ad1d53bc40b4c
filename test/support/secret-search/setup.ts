import { afterAll, afterEach, expect } from 'vitest'
import { createSecretSearch, describeFindings } from './secret-search.js'
import { beginSession } from './session.js'
import { watchChannels } from './watch-channels.js'
import { watchErrors } from './watch-errors.js'
import {
  recordSpiedConsole,
  watchChildren,
  watchConsole,
  watchStandardStreams,
} from './watch-output.js'
import { watchRequests } from './watch-requests.js'

// For each test file: learns what secrets go in, records what comes out, and fails the file when
// the one is found in the other.
const search = createSecretSearch(() => expect.getState().currentTestName)
beginSession(search)
watchRequests()
watchChannels()
watchConsole()
watchStandardStreams()
watchChildren()
watchErrors()

afterEach(recordSpiedConsole)

afterAll(() => {
  const findings = search.settle()
  if (findings.length > 0) throw new Error(`A secret has come out:\n${describeFindings(findings)}`)
})
