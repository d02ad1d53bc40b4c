import { issuer } from '../support/issuer.js'
import { sessionsOf } from '../support/sessions.js'
import { walkTable } from './credential-table.js'

walkTable('the table of requests', { issuer, open: () => sessionsOf(issuer) })
