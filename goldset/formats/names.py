"""What the columns of a file of questions with gold are called, ours and other tools', most telling first."""

QUESTION = ("user_input", "question", "query", "input", "prompt", "q", "question_text", "query_text", "messages")
QUESTION_ID = ("question_id", "query_id", "query-id", "qid", "_id", "id")
IDS = ("gold_ids", "gold_id", "reference_context_ids", "relevant_ids", "relevant_doc_ids", "relevant_docs",
       "relevant_chunk_ids", "expected_ids", "expected_doc_ids", "expected_chunk_ids", "ground_truth_ids",
       "context_ids", "chunk_ids", "chunk_id", "doc_ids", "doc_id", "docid", "document_ids", "document_id",
       "passage_ids", "passage_id", "corpus-id", "corpus_id", "gold")
TEXTS = ("reference_contexts", "reference_context", "gold_texts", "gold_text", "gold_passages", "gold_passage",
         "gold_contexts", "gold_context", "relevant_texts", "relevant_contexts", "ground_truth_contexts",
         "ground_truth_context", "expected_contexts", "contexts", "context", "passages", "passage", "documents",
         "source_documents", "evidence")
# How qrels name their columns.
QUESTION_NAMES = {"query-id", "query_id", "question_id", "question-id", "qid", "topic"}
PASSAGE_NAMES = {"corpus-id", "corpus_id", "docid", "doc_id", "doc-id", "docno", "passage_id", "chunk_id", "pid"}
GRADE = ("grade", "relevance", "relevant", "rating", "label", "score")
