"""Hugging Face Trainer: a small GPT-2 from scratch on random tokens, data parallel by torchrun."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

VOCABULARY, LENGTH = 1000, 64


class RandomTokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        tokens = torch.randint(0, VOCABULARY, (LENGTH,))
        return {"input_ids": tokens, "labels": tokens}


config = GPT2Config(n_layer=3, n_head=4, n_embd=128, vocab_size=VOCABULARY, n_positions=LENGTH)
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=8,
    max_steps=100_000,
    learning_rate=3e-4,
    warmup_steps=100,
    logging_steps=20,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    ddp_backend="gloo",
    disable_tqdm=True,
)
Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=RandomTokens()).train()
