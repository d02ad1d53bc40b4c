import type { GivenAnswer } from '../stored-answer.js'
import { keptAnswer } from './kept-answer.js'

process.once('disconnect', () => process.exit(0))
process.once('message', async (answer: GivenAnswer) => {
  process.send?.(await keptAnswer(answer))
})
